import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The rival of the benchmarks: joins clicks with the lists of queries within five minutes, and
 * counts how often each item of a query was shown and clicked at each rank.
 *
 * <p>Records are keyed by query. So a click, its list and the counts of their query are in one
 * partition, and nothing goes through a repartition topic. Counts are the last value of each key of
 * the topic {@code APPLICATION-counts-changelog}; see {@link Counts}.
 *
 * <pre>java CountClicks APPLICATION BOOTSTRAP QUERIES CLICKS STATE_FOLDER THREADS</pre>
 */
public final class CountClicks {
  static final long WINDOW_MS = Duration.ofMinutes(5).toMillis();

  public static void main(String[] words) {
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, words[0]);
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, words[1]);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, words[4]);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, words[5]);
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream(List.of(words[2], words[3]), Event.CONSUMED).process(new Counting());
    KafkaStreams streams = new KafkaStreams(builder.build(), settings);
    streams.setStateListener(
        (now, before) -> {
          if (now == KafkaStreams.State.RUNNING) System.out.println("running");
          if (now == KafkaStreams.State.ERROR) Runtime.getRuntime().halt(1);
        });
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    streams.start();
  }

  /** A list that was shown, or a click, which shows nothing. */
  record Event(String impression, byte[] query, long atMs, int position, List<byte[]> shown) {
    static final JsonFactory JSON = new JsonFactory();
    static final Serde<Event> SERDE =
        Serdes.serdeFrom((topic, event) -> null, (topic, bytes) -> parse(bytes));
    static final Consumed<byte[], Event> CONSUMED =
        Consumed.with(Serdes.ByteArray(), SERDE)
            .withTimestampExtractor(
                (record, time) -> record.value() instanceof Event e ? e.atMs : Math.max(0, time));

    /** Only the fields that are counted are made objects of; nothing where there is no event. */
    static Event parse(byte[] bytes) {
      if (bytes == null || bytes.length == 0) return null;
      String impression = null;
      byte[] query = null;
      long atMs = 0;
      int position = 0;
      List<byte[]> shown = null;
      try (JsonParser json = JSON.createParser(bytes)) {
        json.nextToken();
        while (json.nextToken() == JsonToken.FIELD_NAME) {
          String field = json.currentName();
          json.nextToken();
          switch (field) {
            case "impression_id" -> impression = json.getText();
            case "query_id" -> query = json.getText().getBytes(StandardCharsets.UTF_8);
            case "at_ms" -> atMs = json.getLongValue();
            case "position" -> position = json.getIntValue();
            case "shown" -> {
              shown = new ArrayList<>(16);
              while (json.nextToken() != JsonToken.END_ARRAY)
                shown.add(json.getText().getBytes(StandardCharsets.UTF_8));
            }
            default -> json.skipChildren();
          }
        }
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
      return new Event(impression, query, atMs, position, shown);
    }
  }

  /** Makes the processor and its stores, all of RocksDB. */
  static final class Counting implements ProcessorSupplier<byte[], Event, Void, Void> {
    public Processor<byte[], Event, Void, Void> get() {
      return new Counter();
    }

    public Set<StoreBuilder<?>> stores() {
      // Many events change the counts of one query before they are committed.
      return Set.of(
          window("lists"),
          window("early"),
          Stores.keyValueStoreBuilder(
                  Stores.persistentKeyValueStore("counts"), Serdes.ByteArray(), Serdes.ByteArray())
              .withCachingEnabled());
    }

    /** By impression, at the start of a window: what is asked for then has one known key. */
    private static StoreBuilder<?> window(String name) {
      Duration window = Duration.ofMillis(WINDOW_MS);
      return Stores.windowStoreBuilder(
          Stores.persistentWindowStore(name, window.multipliedBy(3), window, false),
          Serdes.String(),
          Serdes.ByteArray());
    }
  }

  static final class Counter implements Processor<byte[], Event, Void, Void> {
    private WindowStore<String, byte[]> lists;
    private WindowStore<String, byte[]> early;
    private KeyValueStore<byte[], byte[]> counts;

    public void init(ProcessorContext<Void, Void> context) {
      lists = context.getStateStore("lists");
      early = context.getStateStore("early");
      counts = context.getStateStore("counts");
    }

    public void process(Record<byte[], Event> record) {
      Event event = record.value();
      if (event == null) return;
      if (event.shown == null) click(event);
      else list(event);
    }

    private void list(Event event) {
      lists.put(event.impression, packed(event), start(event));
      Counts found = new Counts(counts.get(event.query));
      for (int rank = 1; rank <= event.shown.size(); rank++)
        found.add(event.shown.get(rank - 1), rank, Counts.SHOWN);
      for (long start = start(event); start <= start(event) + WINDOW_MS; start += WINDOW_MS) {
        byte[] clicks = early.fetch(event.impression, start);
        if (clicks == null) continue;
        for (ByteBuffer each = ByteBuffer.wrap(clicks); each.hasRemaining(); ) {
          long atMs = each.getLong();
          int position = each.getInt();
          if (isWithin(event.atMs, atMs))
            found.add(event.shown.get(position - 1), position, Counts.CLICKED);
        }
      }
      counts.put(event.query, found.bytes());
    }

    private void click(Event event) {
      byte[] list = lists.fetch(event.impression, start(event));
      if (list == null) list = lists.fetch(event.impression, start(event) - WINDOW_MS);
      if (list == null) {
        byte[] others = early.fetch(event.impression, start(event));
        int length = others == null ? 0 : others.length;
        ByteBuffer all = ByteBuffer.allocate(length + 12);
        if (others != null) all.put(others);
        all.putLong(event.atMs).putInt(event.position);
        early.put(event.impression, all.array(), start(event));
        return;
      }
      ByteBuffer packed = ByteBuffer.wrap(list);
      if (!isWithin(packed.getLong(), event.atMs)) return;
      byte[] query = part(packed);
      for (int rank = 1; rank < event.position; rank++)
        packed.position(packed.position() + 2 + packed.getShort(packed.position()));
      Counts found = new Counts(counts.get(query));
      found.add(part(packed), event.position, Counts.CLICKED);
      counts.put(query, found.bytes());
    }

    private static long start(Event event) {
      return event.atMs - event.atMs % WINDOW_MS;
    }

    private static boolean isWithin(long shownMs, long clickedMs) {
      return shownMs <= clickedMs && clickedMs <= shownMs + WINDOW_MS;
    }

    /** When it was shown, its query and its items, each behind its length. */
    private static byte[] packed(Event event) {
      int length = 10 + event.query.length;
      for (byte[] item : event.shown) length += 2 + item.length;
      ByteBuffer all = ByteBuffer.allocate(length).putLong(event.atMs);
      all.putShort((short) event.query.length).put(event.query);
      for (byte[] item : event.shown) all.putShort((short) item.length).put(item);
      return all.array();
    }

    private static byte[] part(ByteBuffer from) {
      byte[] found = new byte[from.getShort()];
      from.get(found);
      return found;
    }
  }

  /**
   * Counts of a query. A row an item: length of its name, length of its cells (two bytes each), name
   * and cells. A cell a rank: the rank in a byte, times shown and times clicked, both in groups of
   * seven bits, the lowest first. Counted in place: a count rarely needs a byte more.
   */
  static final class Counts {
    static final int SHOWN = 0;
    static final int CLICKED = 1;
    private byte[] bytes;

    Counts(byte[] stored) {
      bytes = stored == null ? new byte[0] : stored.clone();
    }

    byte[] bytes() {
      return bytes;
    }

    void add(byte[] item, int rank, int column) {
      int row = 0;
      while (row < bytes.length) {
        int cells = row + 4 + length(row);
        int end = cells + length(row + 2);
        if (Arrays.equals(bytes, row + 4, cells, item, 0, item.length)) {
          addTo(row, cells, end, rank, column);
          return;
        }
        row = end;
      }
      int end = row + 4 + item.length;
      bytes = Arrays.copyOf(bytes, end);
      ByteBuffer.wrap(bytes).putShort(row, (short) item.length).put(row + 4, item);
      addTo(row, end, end, rank, column);
    }

    private void addTo(int row, int at, int end, int rank, int column) {
      for (; at < end; at = behind(behind(at + 1))) {
        if (bytes[at] == (byte) rank) {
          increase(row, column == SHOWN ? at + 1 : behind(at + 1));
          return;
        }
      }
      insert(row, end, (byte) rank, (byte) (1 - column), (byte) column);
    }

    private void increase(int row, int at) {
      for (; (bytes[at] & 127) == 127; at++) {
        boolean isLast = bytes[at] >= 0;
        bytes[at] = (byte) 128;
        if (isLast) {
          insert(row, at + 1, (byte) 1);
          return;
        }
      }
      bytes[at]++;
    }

    private void insert(int row, int at, byte... more) {
      byte[] longer = Arrays.copyOf(bytes, bytes.length + more.length);
      System.arraycopy(bytes, at, longer, at + more.length, bytes.length - at);
      System.arraycopy(more, 0, longer, at, more.length);
      ByteBuffer.wrap(longer).putShort(row + 2, (short) (length(row + 2) + more.length));
      bytes = longer;
    }

    private int length(int at) {
      return (bytes[at] & 255) << 8 | bytes[at + 1] & 255;
    }

    private int behind(int at) {
      while (bytes[at++] < 0) {}
      return at;
    }
  }
}
