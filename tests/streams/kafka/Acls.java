import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.tools.AclCommand;

/**
 * Calls of kafka-acls.sh in one process, for tests: a file has a word a line, and an empty
 * line behind each call. A form feed follows what each call prints; one that fails ends all.
 */
public final class Acls {
  private Acls() {}

  public static void main(String[] arguments) throws Exception {
    List<String> words = new ArrayList<>();
    for (String word : Files.readAllLines(Path.of(arguments[0]))) {
      if (!word.isEmpty()) {
        words.add(word);
        continue;
      }
      AclCommand.main(words.toArray(String[]::new));
      words.clear();
      System.out.println("\f");
    }
  }
}
