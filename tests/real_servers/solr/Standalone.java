import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.solr.embedded.JettyConfig;
import org.apache.solr.embedded.JettySolrRunner;

/**
 * A Solr without ZooKeeper on a free port of 127.0.0.1, with its home in the folder that is given: a core "intranet" of the configuration that
 * the project in the second folder ships, which is a configset "crawlspace" too, and a core "bare" that has neither our fields nor our update
 * chain. Prints its address once it answers.
 */
public class Standalone {
    private static final String BARE_SCHEMA = """
        <schema name="bare" version="1.6">
          <fieldType name="string" class="solr.StrField"/>
          <fieldType name="long" class="solr.LongPointField" docValues="true"/>
          <field name="id" type="string" required="true"/>
          <field name="_version_" type="long" indexed="false" stored="false"/>
          <uniqueKey>id</uniqueKey>
        </schema>
        """;
    private static final String BARE_CONFIG = """
        <config>
          <luceneMatchVersion>9.0</luceneMatchVersion>
          <schemaFactory class="ClassicIndexSchemaFactory"/>
          <updateHandler class="solr.DirectUpdateHandler2"><updateLog/></updateHandler>
          <requestHandler name="/select" class="solr.SearchHandler"/>
        </config>
        """;

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]);
        Path ours = core(home, "intranet");
        Path configset = Files.createDirectories(home.resolve("configsets").resolve("crawlspace").resolve("conf"));
        try (var files = Files.list(Path.of(arguments[1], "crawlspace", "index", "solr", "conf"))) {
            for (Path file : files.toList()) {
                Files.copy(file, ours.resolve(file.getFileName()));
                Files.copy(file, configset.resolve(file.getFileName()));
            }
        }
        Path bare = core(home, "bare");
        Files.writeString(bare.resolve("schema.xml"), BARE_SCHEMA);
        Files.writeString(bare.resolve("solrconfig.xml"), BARE_CONFIG);
        Files.writeString(home.resolve("solr.xml"), "<solr/>");
        System.setProperty("solr.jetty.host", "127.0.0.1");
        System.setProperty("solr.log.dir", home.toString());
        JettyConfig config = JettyConfig.builder().setContext("/solr").setPort(0).build();
        JettySolrRunner jetty = new JettySolrRunner(home.toString(), new Properties(), config);
        jetty.start();
        System.out.println("READY http://127.0.0.1:" + jetty.getLocalPort() + "/solr");
        new CountDownLatch(1).await();
    }

    private static Path core(Path home, String name) throws Exception {
        Path folder = Files.createDirectories(home.resolve(name).resolve("conf"));
        Files.writeString(home.resolve(name).resolve("core.properties"), "name=" + name + "\n");
        return folder;
    }
}
