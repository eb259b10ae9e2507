import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.apache.solr.client.solrj.request.CollectionAdminRequest;
import org.apache.solr.cloud.MiniSolrCloudCluster;
import org.apache.solr.embedded.JettyConfig;

/**
 * Two nodes of Solr with ZooKeeper on free ports of 127.0.0.1, with their data in the folder that is given: a collection "intranet" of two
 * shards, each on both nodes, of the configuration that the project in the second folder ships, and a collection "bare" that has neither our
 * fields nor our update chain. Prints the address of a node once it answers.
 */
public class Cloud {
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
        Path home = Files.createDirectories(Path.of(arguments[0]));
        Path bare = Files.createDirectories(home.resolve("bare"));
        Files.writeString(bare.resolve("schema.xml"), BARE_SCHEMA);
        Files.writeString(bare.resolve("solrconfig.xml"), BARE_CONFIG);
        System.setProperty("solr.jetty.host", "127.0.0.1");
        System.setProperty("solr.log.dir", home.toString());
        JettyConfig config = JettyConfig.builder().setContext("/solr").build();
        MiniSolrCloudCluster cluster = new MiniSolrCloudCluster(2, home.resolve("nodes"), config);
        cluster.uploadConfigSet(Path.of(arguments[1], "crawlspace", "index", "solr", "conf"), "crawlspace");
        cluster.uploadConfigSet(bare, "bare");
        CollectionAdminRequest.createCollection("intranet", "crawlspace", 2, 2).process(cluster.getSolrClient());
        CollectionAdminRequest.createCollection("bare", "bare", 1, 1).process(cluster.getSolrClient());
        cluster.waitForActiveCollection("intranet", 2, 4);
        cluster.waitForActiveCollection("bare", 1, 1);
        System.out.println("READY " + cluster.getJettySolrRunner(0).getBaseUrl());
        new CountDownLatch(1).await();
    }
}
