import java.util.concurrent.CountDownLatch;
import org.codelibs.opensearch.runner.OpenSearchRunner;
import org.opensearch.http.HttpServerTransport;

/**
 * An OpenSearch of one node on 127.0.0.1, with its data in the folder that is given, and on the port that is the third argument; without
 * one, on a free port. Prints its address once it answers.
 */
public class SingleNode {
    public static void main(String[] arguments) throws Exception {
        OpenSearchRunner runner = new OpenSearchRunner();
        runner.onBuild((number, settings) -> {
            settings.put("network.host", "127.0.0.1");
            settings.put("http.port", arguments.length > 2 ? arguments[2] : "0");
            settings.put("transport.port", "0");
            settings.put("discovery.type", "single-node");
            settings.put("cluster.routing.allocation.disk.threshold_enabled", "false");
            settings.putList("node.roles", "cluster_manager", "data", "ingest");
        }).build(OpenSearchRunner.newConfigs().basePath(arguments[0]).numOfNode(1).clusterName("crawlspace-tests"));
        var address = runner.node().injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress();
        System.out.println("READY http://127.0.0.1:" + address.getPort());
        new CountDownLatch(1).await();
    }
}
