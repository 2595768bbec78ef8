// Clients of a fleet, each at its own rate: each calls its gateway or any other, and every fourth
// uses a small budget.
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "tollgate/plugin";
import type { Fleet } from "../../kit/database/fleet.ts";
import { PICTURE, encodeScript } from "../money/billing-upstream.ts";
import { running } from "./fleet-faults.ts";
import type { Tight } from "./fleet-checks.ts";
import type { Chance } from "../rig.ts";
import { ask, nextRequest, type ClientResult } from "../load/traffic.ts";

/** Number of images that a tight budget covers. */
const WORTH = 40;
/** How far delayed clients catch up. */
const BACKLOG_MS = 20_000;

export class Traffic {
  readonly heard: ClientResult[] = [];
  readonly tight: Tight[] = [];
  over = false;
  readonly #fleet: Fleet;
  readonly #chanced: Chance;
  readonly #key: string;
  readonly #everyMs: number;
  #count = 0;
  /** When the next call is due, by the monotonic clock. */
  #next = performance.now();
  #purse: Promise<(Tight & { secret: string }) | undefined> | undefined;

  /** `rate`: calls per second while clients are free. */
  constructor(fleet: Fleet, chanced: Chance, rate: number) {
    this.#fleet = fleet;
    this.#chanced = chanced;
    this.#key = fleet.key;
    this.#everyMs = 1_000 / rate;
  }

  async client(i: number): Promise<void> {
    while (!this.over) {
      await this.#turn();
      await (i % 4 === 3 ? this.#draw(i) : this.#talk(i));
    }
  }

  /** Each at its time. After a pause, one directly after another. */
  async #turn(): Promise<void> {
    const now = performance.now();
    this.#next = Math.max(this.#next + this.#everyMs, now - BACKLOG_MS);
    if (this.#next > now) await sleep(this.#next - now);
  }

  /** Mostly the client's own gateway, so that one that hangs does not hold up all of them. */
  #url(i: number): string | undefined {
    const { nodes } = this.#fleet;
    const own = this.#chanced.often(0.9) ? nodes[i % nodes.length]!.daemon : undefined;
    return (own ?? this.#chanced.one(nodes).daemon)?.url;
  }

  async #talk(i: number): Promise<void> {
    const request = nextRequest(this.#chanced, `t.${this.#count++}`);
    const url = this.#url(i);
    if (url === undefined) return sleep(20);
    await this.#ask(url, this.#key, request);
  }

  /** An image has one price, so a budget covers a fixed number of them. */
  async #draw(i: number): Promise<void> {
    const url = this.#url(i);
    const of = url && (await (this.#purse ??= this.#made()));
    if (!of) {
      this.#purse = undefined;
      return sleep(50);
    }
    const tag = `${of.tag}.${this.#count++}`;
    const prompt = encodeScript({ tag, words: 0, gap: this.#chanced.below(20) });
    const body = { model: "pictures/draw", prompt, response_format: "b64_json" };
    const path = "/v1/images/generations";
    const request = { tag, path, body, stream: false, leaves: undefined };
    const { status } = await this.#ask(url, of.secret, request);
    if (status === 429) this.#purse = undefined;
  }

  /** A key with its own budget. Undefined: no gateway could create one now. */
  async #made(): Promise<(Tight & { secret: string }) | undefined> {
    const tag = `b${this.#count++}`;
    const worth = BigInt(WORTH) * PICTURE;
    const limits = [formatLimit({ unit: "nano_usd", max: Number(worth), per: "total" })];
    const late = sleep(8_000, undefined, { ref: false });
    const asked = running(this.#fleet, this.#chanced)
      .daemon!.ask("keys.create", { name: tag, limits } as JsonObject)
      .catch(() => undefined);
    const made = (await Promise.race([asked, late])) as { secret: string } | undefined;
    if (!made) return undefined;
    this.tight.push({ tag, worth });
    return { tag, worth, secret: made.secret };
  }

  async #ask(url: string, key: string, request: ClientResult["request"]): Promise<ClientResult> {
    const heard = await ask(url, key, request);
    // Many thousands are kept, and only their ends are read again.
    this.heard.push({ ...heard, text: heard.text.slice(-80) });
    // A gateway that is down rejects immediately, so a client waits a little.
    if (heard.status !== 200) await sleep(20);
    return heard;
  }
}
