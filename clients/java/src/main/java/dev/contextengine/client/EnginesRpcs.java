package dev.contextengine.client;

import dev.contextengine.v1.AssignRequest;
import dev.contextengine.v1.AssignResponse;
import dev.contextengine.v1.DoctorRequest;
import dev.contextengine.v1.DoctorResponse;
import dev.contextengine.v1.EnginesGetRequest;
import dev.contextengine.v1.EnginesGetResponse;
import dev.contextengine.v1.EnginesGrpc;
import dev.contextengine.v1.EnginesListRequest;
import dev.contextengine.v1.EnginesListResponse;
import dev.contextengine.v1.ListQuotasRequest;
import dev.contextengine.v1.ListQuotasResponse;
import dev.contextengine.v1.SetQuotaRequest;
import dev.contextengine.v1.SetQuotaResponse;

/** The engines that the server hosts. */
public final class EnginesRpcs {
    private final Transport transport;

    EnginesRpcs(Transport transport) {
        this.transport = transport;
    }

    /** Lists the engines, the default first. */
    public EnginesListResponse list(EnginesListRequest request) {
        return transport.unary(EnginesGrpc.getListMethod(), request);
    }

    /** Answers one engine with its options. */
    public EnginesGetResponse get(EnginesGetRequest request) {
        return transport.unary(EnginesGrpc.getGetMethod(), request);
    }

    /** Checks settings, store, engines and limits, and says what to do about what is wrong. */
    public DoctorResponse doctor(DoctorRequest request) {
        return transport.unary(EnginesGrpc.getDoctorMethod(), request);
    }

    /**
     * Chooses an engine or an option for a tenant, an agent or a session. Operators only: an agent never chooses its engine.
     */
    public AssignResponse assign(AssignRequest request) {
        return transport.unary(EnginesGrpc.getAssignMethod(), request);
    }

    /** Lists what tenants may hold of the server at once, and what they hold. Operators only. */
    public ListQuotasResponse listQuotas(ListQuotasRequest request) {
        return transport.unary(EnginesGrpc.getListQuotasMethod(), request);
    }

    /** Stores a quota of a tenant, or removes it. The server's owner only. */
    public SetQuotaResponse setQuota(SetQuotaRequest request) {
        return transport.unary(EnginesGrpc.getSetQuotaMethod(), request);
    }
}
