// One scrape: everything that was counted and everything that is read, as text. It is kept for a second, so that several scrapers
// cost no more than one.
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Everything } from "./everything.ts";
import { Exposition, type Form } from "./text.ts";

const zipped = promisify(gzip);
const KEPT_MS = 1_000;

interface Kept {
  readonly at: number;
  readonly text: Promise<Buffer>;
  zip: Promise<Buffer> | undefined;
}

export class Scrape {
  readonly #all: Everything;
  readonly #kept = new Map<Form, Kept>();

  constructor(all: Everything) {
    this.#all = all;
  }

  async body(form: Form, compressed: boolean): Promise<Buffer> {
    const kept = this.#fresh(form);
    if (!compressed) return kept.text;
    return (kept.zip ??= kept.text.then((text) => zipped(text, { level: 1 })));
  }

  #fresh(form: Form): Kept {
    const now = performance.now();
    const before = this.#kept.get(form);
    if (before && now - before.at < KEPT_MS) return before;
    const text = this.#write(form).then((written) => Buffer.from(written));
    // What went wrong is not kept.
    text.catch(() => this.#kept.delete(form));
    const kept: Kept = { at: now, text, zip: undefined };
    this.#kept.set(form, kept);
    return kept;
  }

  async #write(form: Form): Promise<string> {
    const out = new Exposition(form);
    await this.#all.tell(out);
    return out.end();
  }
}
