import java.util.concurrent.CountDownLatch;
import org.codelibs.elasticsearch.runner.ElasticsearchClusterRunner;
import org.elasticsearch.http.HttpServerTransport;

/** An Elasticsearch of one node on a free port of 127.0.0.1, with its data in the folder that is given. Prints its address once it answers. */
public class SingleNode {
    public static void main(String[] arguments) throws Exception {
        ElasticsearchClusterRunner runner = new ElasticsearchClusterRunner();
        runner.onBuild((number, settings) -> {
            settings.put("network.host", "127.0.0.1");
            settings.put("http.port", "0");
            settings.put("transport.port", "0");
            settings.put("discovery.type", "single-node");
            settings.put("cluster.routing.allocation.disk.threshold_enabled", "false");
            settings.putList("node.roles", "master", "data", "ingest");
        }).build(ElasticsearchClusterRunner.newConfigs().basePath(arguments[0]).numOfNode(1).clusterName("crawlspace-tests"));
        var address = runner.node().injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress();
        System.out.println("READY http://127.0.0.1:" + address.getPort());
        new CountDownLatch(1).await();
    }
}
