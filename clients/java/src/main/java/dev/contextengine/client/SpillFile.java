package dev.contextengine.client;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.contextengine.v1.AfterTurnRequest;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;

/** The file that outlives a client: requests that could not be sent, each behind its length as a varint. */
final class SpillFile implements AutoCloseable {
    private static final int MAX_VARINT_BYTES = 10;

    /** Not a channel, which the interruption of a thread that uses it closes for all others. */
    private final RandomAccessFile file;

    private SpillFile(RandomAccessFile file) {
        this.file = file;
    }

    /** Opens a spill file and adds what it holds to a list. A last record that was cut off is taken away. */
    static SpillFile open(Path path, List<AfterTurnRequest> into) {
        try {
            byte[] data = Files.exists(path) ? Files.readAllBytes(path) : new byte[0];
            int whole = read(path, data, into);
            create(path);
            RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw");
            cut(file, whole);
            return new SpillFile(file);
        } catch (IOException error) {
            throw new UncheckedIOException("spill file " + path + ": " + error.getMessage(), error);
        }
    }

    /** Makes a file that is not there yet, for its owner's eyes alone: it holds what was said. */
    private static void create(Path path) throws IOException {
        boolean knowsOwners = path.getFileSystem().supportedFileAttributeViews().contains("posix");
        FileAttribute<?>[] own = knowsOwners
                ? new FileAttribute<?>[] {PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))}
                : new FileAttribute<?>[0];
        try {
            Files.createFile(path, own);
        } catch (FileAlreadyExistsException there) {
            // It stays as it is.
        }
    }

    private static void cut(RandomAccessFile file, long length) throws IOException {
        file.setLength(length);
        file.seek(length);
    }

    /** Reads the records, and answers where the last whole one ends. */
    private static int read(Path path, byte[] data, List<AfterTurnRequest> into) {
        int position = 0;
        while (true) {
            int start = position;
            long length = 0;
            while (start < data.length && start - position < MAX_VARINT_BYTES && data[start] < 0) {
                length |= (data[start] & 0x7FL) << 7 * (start++ - position);
            }
            if (start == data.length || data[start] < 0) {
                return position;
            }
            length |= (long) data[start] << 7 * (start++ - position);
            if (length < 0 || length > data.length - start) {
                return position;
            }
            try {
                into.add(AfterTurnRequest.parser().parseFrom(data, start, (int) length));
            } catch (InvalidProtocolBufferException damaged) {
                throw new IllegalArgumentException("spill file " + path + ": no request at byte " + position
                        + ": move it away to go on without what it holds", damaged);
            }
            position = start + (int) length;
        }
    }

    /** Adds a request. It is on the disk when this returns. */
    void append(AfterTurnRequest entry) {
        try {
            long whole = file.getFilePointer();
            try {
                ByteArrayOutputStream record = new ByteArrayOutputStream();
                entry.writeDelimitedTo(record);
                file.write(record.toByteArray());
                file.getFD().sync();
            } catch (IOException error) {
                // Half a record would be damage as soon as another follows it.
                cut(file, whole);
                throw error;
            }
        } catch (IOException error) {
            throw new UncheckedIOException("spill file: " + error.getMessage(), error);
        }
    }

    /** Leaves the file empty. Where that fails its records are sent again, which does no harm. */
    void clear() {
        try {
            cut(file, 0);
        } catch (IOException harmless) {
            // See above.
        }
    }

    /** Closes the file. What it holds stays. */
    @Override
    public void close() {
        try {
            file.close();
        } catch (IOException harmless) {
            // Every record was synced when it was written.
        }
    }
}
