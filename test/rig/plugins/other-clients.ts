// Clients of healthy providers, in every protocol, during the other requests: their responses, and
// their retries.
import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "../rig.ts";
import { ask, nextRequest, type ClientResult } from "../load/traffic.ts";

/** Their current address. */
export interface Asked {
  readonly url: string;
  readonly key: string;
}

const SHARES = { leave: 0.1, retried: 0.05 };
/** A client that waits longer for a connection or a response was forgotten. */
const FORGOTTEN_MS = 40_000;
/** Delays of the official SDKs after a failed connection, with a few more retries. */
const AGAIN_MS = 250;
const TRIES = 240;

export class Others {
  readonly heard: ClientResult[] = [];
  readonly failed: string[] = [];
  again = 0;
  #asked = 0;
  /** Whether processes end meanwhile: then a connection may break, and its client asks again. */
  readonly #lossy: boolean;
  readonly #at: () => Asked;
  readonly #chanced: Chance;
  readonly #name: string;
  #over = false;
  readonly #lanes: Promise<void>[];

  constructor(of: {
    readonly name: string;
    readonly at: () => Asked;
    readonly clients: number;
    readonly chanced: Chance;
    readonly lossy: boolean;
  }) {
    this.#lossy = of.lossy;
    this.#at = of.at;
    this.#chanced = of.chanced;
    this.#name = of.name;
    this.#lanes = Array.from({ length: of.clients }, async () => {
      while (!this.#over) {
        await this.#one();
        await sleep(of.chanced.below(20));
      }
    });
  }

  get asked(): number {
    return this.#asked;
  }

  async end(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#lanes);
  }

  async #one(): Promise<void> {
    const tag = `${this.#name}${this.#asked++}`;
    const first = nextRequest(this.#chanced, tag, SHARES);
    for (let n = 0; ; n++) {
      const request = n === 0 ? first : retagged(first, tag, `${tag}-${n}`);
      const { url, key } = this.#at();
      const forgotten = AbortSignal.timeout(FORGOTTEN_MS);
      const heard = await ask(url, key, request, { given: forgotten });
      this.heard.push(heard);
      if (heard.delivered) return;
      const said = `${request.tag}: ${heard.status} ${heard.text.slice(-200)}`;
      if (forgotten.aborted) return void this.failed.push(`forgotten: ${said}`);
      if (request.leaves !== undefined) return;
      if (!this.#lossy || n >= TRIES || !mayBeAsked(heard)) return void this.failed.push(said);
      this.again++;
      await sleep(AGAIN_MS);
    }
  }
}

/** A response that starts with `"error":null`. */
const FAILED = /"error":\s*\{|"type":\s*"error"/;

/** No response, a truncated one, or one that asks for a retry. */
const mayBeAsked = ({ status, text }: ClientResult): boolean =>
  status === 0 || status === 503 || (status === 200 && !FAILED.test(text));

function retagged(
  request: ClientResult["request"],
  from: string,
  tag: string,
): ClientResult["request"] {
  const said = JSON.stringify(request.body).replaceAll(`tag=${from} `, `tag=${tag} `);
  return { ...request, tag, body: JSON.parse(said) as object };
}
