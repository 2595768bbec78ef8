// Produces the text of a scrape: all counted and read metrics. The text is cached for 1 s, so
// several scrapers cost no more than one.
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { MetricsWriter } from "./metrics-writer.ts";
import { Exposition, type ExpositionFormat } from "./exposition.ts";

const compressGzip = promisify(gzip);
const CACHE_TTL_MS = 1_000;

interface CachedScrape {
  readonly at: number;
  readonly text: Promise<Buffer>;
  zip: Promise<Buffer> | undefined;
}

export class ScrapeCache {
  readonly #writer: MetricsWriter;
  readonly #kept = new Map<ExpositionFormat, CachedScrape>();

  constructor(all: MetricsWriter) {
    this.#writer = all;
  }

  async body(form: ExpositionFormat, compressed: boolean): Promise<Buffer> {
    const kept = this.#fresh(form);
    if (!compressed) return kept.text;
    return (kept.zip ??= kept.text.then((text) => compressGzip(text, { level: 1 })));
  }

  #fresh(form: ExpositionFormat): CachedScrape {
    const now = performance.now();
    const before = this.#kept.get(form);
    if (before && now - before.at < CACHE_TTL_MS) return before;
    const text = this.#write(form).then((written) => Buffer.from(written));
    // Failures are not cached.
    text.catch(() => this.#kept.delete(form));
    const kept: CachedScrape = { at: now, text, zip: undefined };
    this.#kept.set(form, kept);
    return kept;
  }

  async #write(form: ExpositionFormat): Promise<string> {
    const out = new Exposition(form);
    await this.#writer.writeTo(out);
    return out.finish();
  }
}
