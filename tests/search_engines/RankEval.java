import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.opensearch.common.xcontent.json.JsonXContent;
import org.opensearch.core.xcontent.DeprecationHandler;
import org.opensearch.core.xcontent.NamedXContentRegistry;
import org.opensearch.core.xcontent.XContentParser;
import org.opensearch.index.rankeval.RankEvalNamedXContentProvider;
import org.opensearch.index.rankeval.RankEvalSpec;

/** Reads the body of a request to _rank_eval as the server does, and prints what it holds. */
public final class RankEval {
  private RankEval() {}

  public static void main(String[] arguments) throws Exception {
    NamedXContentRegistry known =
        new NamedXContentRegistry(new RankEvalNamedXContentProvider().getNamedXContentParsers());
    try (InputStream file = Files.newInputStream(Path.of(arguments[0]));
        XContentParser parser =
            JsonXContent.jsonXContent.createParser(
                known, DeprecationHandler.THROW_UNSUPPORTED_OPERATION, file)) {
      System.out.println(RankEvalSpec.parse(parser));
    }
  }
}
