package dev.contextengine.client;

import dev.contextengine.v1.ContextEngineGrpc;
import dev.contextengine.v1.EnginesGrpc;
import dev.contextengine.v1.ProjectionGrpc;
import dev.contextengine.v1.RecallGrpc;
import dev.contextengine.v1.RuntimeGrpc;
import dev.contextengine.v1.SessionsGrpc;
import io.grpc.MethodDescriptor;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;

/** The rpcs by {@code Service.Rpc}: how long each may take, and which are sent again. */
final class Calls {
    /** How often a call is sent at most that is refused, or that asks for a service known to be away. */
    static final int MAX_ATTEMPTS = 4;
    /** For how long a service that is away is asked again: a rolling restart takes less. */
    static final Duration RETRY_FOR = Duration.ofSeconds(10);

    private static final Duration QUICK = Duration.ofSeconds(15);
    private static final Duration LONG = Duration.ofSeconds(60);
    private static final Duration SLOW = Duration.ofSeconds(600);

    private static final List<MethodDescriptor<?, ?>> METHODS = Stream.of(
                    ContextEngineGrpc.getServiceDescriptor(), SessionsGrpc.getServiceDescriptor(),
                    EnginesGrpc.getServiceDescriptor(), RecallGrpc.getServiceDescriptor(),
                    ProjectionGrpc.getServiceDescriptor(), RuntimeGrpc.getServiceDescriptor())
            .<MethodDescriptor<?, ?>>flatMap(service -> service.getMethods().stream())
            .sorted(Comparator.comparing(MethodDescriptor::getFullMethodName))
            .toList();

    /** Every rpc with its deadline; zero means none. */
    private static final Map<String, Duration> TIMEOUTS = timeouts();

    /** What is not sent again on UNAVAILABLE: a tool may do anything, and a conversation cannot be repeated. */
    private static final Set<String> SENT_ONCE = Set.of("ContextEngine.CallTool", "Runtime.Attach");

    private Calls() {}

    /** {@code Service.Rpc} of a method. */
    static String nameOf(MethodDescriptor<?, ?> method) {
        String service = method.getServiceName();
        return service.substring(service.lastIndexOf('.') + 1) + "." + method.getBareMethodName();
    }

    /** Every rpc with its deadline, those that are given in place of the defaults. */
    static Map<String, Duration> timeouts(Map<String, Duration> given) {
        Map<String, Duration> all = new TreeMap<>(TIMEOUTS);
        given.forEach((name, timeout) -> {
            if (all.replace(name, timeout) == null) {
                throw new IllegalArgumentException(
                        "timeouts: unknown rpc " + name + "; known are " + String.join(", ", all.keySet()));
            }
            if (timeout.isNegative()) {
                throw new IllegalArgumentException(
                        "timeouts: " + name + " is " + timeout + ": it must be above 0, or 0 for none");
            }
        });
        return all;
    }

    private static Map<String, Duration> timeouts() {
        Map<String, Duration> all = new TreeMap<>();
        METHODS.forEach(method -> all.put(nameOf(method), QUICK));
        Stream.of("Bootstrap", "Ingest", "IngestBatch", "Assemble", "AfterTurn", "ShouldCompact", "CallTool", "EndSession")
                .forEach(name -> all.put("ContextEngine." + name, LONG));
        Stream.of("Sessions.Delete", "Engines.Doctor", "Recall.Search", "Recall.Expand", "Projection.Project")
                .forEach(name -> all.put(name, LONG));
        Stream.of("ContextEngine.Compact", "Sessions.Import", "Sessions.Export").forEach(name -> all.put(name, SLOW));
        Stream.of("Sessions.Watch", "Runtime.Attach").forEach(name -> all.put(name, Duration.ZERO));
        return all;
    }

    /** Whether an rpc may be sent again on UNAVAILABLE. */
    static boolean isSafeTwice(MethodDescriptor<?, ?> method) {
        return !SENT_ONCE.contains(nameOf(method));
    }

    /** gRPC's service config: a stream that is safe to open twice is opened again on UNAVAILABLE. */
    static Map<String, Object> serviceConfig() {
        List<Map<String, String>> names = METHODS.stream()
                .filter(method -> method.getType() != MethodDescriptor.MethodType.UNARY && isSafeTwice(method))
                .map(method -> Map.of("service", method.getServiceName(), "method", method.getBareMethodName()))
                .toList();
        Map<String, Object> policy = Map.of(
                "maxAttempts", (double) MAX_ATTEMPTS,
                "initialBackoff", "0.1s",
                "maxBackoff", "1s",
                "backoffMultiplier", 3.0,
                "retryableStatusCodes", List.of("UNAVAILABLE"));
        return Map.of("methodConfig", List.of(Map.of("name", names, "retryPolicy", policy)));
    }

    /** Whether a gRPC target can only be this machine. */
    static boolean isLoopback(String target) {
        if (target.startsWith("unix:") || target.startsWith("unix-abstract:")) {
            return true;
        }
        String address = target.substring(target.lastIndexOf('/') + 1);
        String host = hostOf(address.startsWith("dns:") ? address.substring("dns:".length()) : address);
        if (host.equals("localhost") || host.matches("127(\\.\\d{1,3}){3}")) {
            return true;
        }
        try {
            // What has a colon is an address, which is not looked up.
            return host.contains(":") && InetAddress.getByName(host).isLoopbackAddress();
        } catch (UnknownHostException notAnAddress) {
            return false;
        }
    }

    private static String hostOf(String address) {
        if (address.startsWith("[")) {
            return address.substring(1, Math.max(1, address.indexOf(']')));
        }
        int colon = address.indexOf(':');
        // An IPv6 address by itself has several colons and no port.
        return colon >= 0 && colon == address.lastIndexOf(':') ? address.substring(0, colon) : address;
    }
}
