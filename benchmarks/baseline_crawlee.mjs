// Crawlee on Node, as its documentation begins: every link of the same host, and url, title and text into its data set.
//
//     node benchmarks/baseline_crawlee.mjs FOLDER START_URL CONCURRENCY [memory]
//
// FOLDER holds the node_modules with @crawlee/cheerio, which is part of `crawlee`. The data set is written below
// CRAWLEE_STORAGE_DIR, a file a page, and the queue beside it, as Crawlee does by default; with `memory` nothing is kept.

import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [folder, startUrl, concurrency, storage] = process.argv.slice(2);
const { CheerioCrawler, Configuration, EnqueueStrategy, log } = createRequire(join(resolve(folder), "package.json"))("@crawlee/cheerio");

log.setLevel(log.LEVELS.WARNING);
const atATime = Number(concurrency);
const crawler = new CheerioCrawler(
    {
        // The least is the most, so that its pool does not hold itself back on a busy machine.
        minConcurrency: atATime,
        maxConcurrency: atATime,
        async requestHandler({ request, $, enqueueLinks, pushData }) {
            await pushData({ url: request.url, title: $("title").text(), text: $("body").text() });
            await enqueueLinks({ strategy: EnqueueStrategy.SameHostname });
        },
    },
    new Configuration(storage === "memory" ? { persistStorage: false } : {}),
);
const statistics = await crawler.run([startUrl]);
console.log(`${statistics.requestsFinished} finished, ${statistics.requestsFailed} failed`);
