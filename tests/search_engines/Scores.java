import ciir.umass.edu.learning.DenseDataPoint;
import ciir.umass.edu.learning.Ranker;
import ciir.umass.edu.learning.RankerFactory;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.solr.common.util.NamedList;
import org.apache.solr.core.SolrResourceLoader;
import org.apache.solr.ltr.model.LTRScoringModel;
import org.apache.solr.ltr.store.rest.ManagedFeatureStore;
import org.apache.solr.ltr.store.rest.ManagedModelStore;
import org.apache.solr.rest.ManagedResourceStorage.InMemoryStorageIO;
import org.noggit.ObjectBuilder;

/**
 * Scores of documents by models in files, for tests: FOLDER has documents.csv, without
 * NaN, and models *.ranklib and *.solr. Each gets a file *.scores beside it.
 */
public final class Scores {
  private Scores() {}

  private interface Model {
    double score(float[] features);
  }

  /** The store of a Solr, whose way in is open to Solr's own HTTP alone. */
  private static final class Store extends ManagedModelStore {
    Store(SolrResourceLoader loader) {
      super("/schema/model-store", loader, new InMemoryStorageIO());
    }

    LTRScoringModel add(Map<String, Object> model) {
      applyUpdatesToManagedData(model);
      return getModel((String) model.get("name"));
    }
  }

  private static Model ofRankLib(Path file) throws IOException {
    Ranker ranker = new RankerFactory().loadRankerFromString(Files.readString(file));
    return features -> {
      StringBuilder line = new StringBuilder("0 qid:1");
      for (int i = 0; i < features.length; i++) {
        line.append(' ').append(i + 1).append(':').append(features[i]);
      }
      return ranker.eval(new DenseDataPoint(line.toString()));
    };
  }

  @SuppressWarnings("unchecked")
  private static Model ofSolr(Path file) throws Exception {
    Map<String, Object> told =
        (Map<String, Object>) ObjectBuilder.fromJSON(Files.readString(file));
    SolrResourceLoader loader = new SolrResourceLoader(file.getParent());
    ManagedFeatureStore features =
        new ManagedFeatureStore("/schema/feature-store", loader, new InMemoryStorageIO());
    for (Map<String, Object> one : (List<Map<String, Object>>) told.get("features")) {
      Map<String, Object> feature = new LinkedHashMap<>();
      feature.put("name", one.get("name"));
      feature.put("class", "org.apache.solr.ltr.feature.ValueFeature");
      feature.put("params", new HashMap<>(Map.of("value", "0")));
      features.addFeature(feature, null);
    }
    Store store = new Store(loader);
    store.setManagedFeatureStore(features);
    LTRScoringModel model = store.add(told);
    return values -> {
      float[] own = values.clone();
      model.normalizeFeaturesInPlace(own);
      return model.score(own);
    };
  }

  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]);
    PrintStream out = System.out;
    System.setOut(System.err);
    List<float[]> documents = new ArrayList<>();
    for (String line : Files.readAllLines(folder.resolve("documents.csv"))) {
      String[] told = line.split(",");
      float[] features = new float[told.length];
      for (int i = 0; i < told.length; i++) {
        features[i] = Float.parseFloat(told[i]);
      }
      documents.add(features);
    }
    List<Path> files;
    try (var listed = Files.list(folder)) {
      files = listed.sorted(Comparator.naturalOrder()).toList();
    }
    for (Path file : files) {
      String name = file.getFileName().toString();
      boolean isSolr = name.endsWith(".solr");
      if (!isSolr && !name.endsWith(".ranklib")) {
        continue;
      }
      Model model = isSolr ? ofSolr(file) : ofRankLib(file);
      List<String> scores = new ArrayList<>();
      for (float[] document : documents) {
        scores.add(Double.toString(model.score(document)));
      }
      Files.write(folder.resolve(name + ".scores"), scores);
      out.println(name);
    }
  }
}
