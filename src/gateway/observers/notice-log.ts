// What the gateway tells of itself, for the log: once for all processes, though each finds it out by itself.
import type { Log } from "../../lib/log.ts";
import type { Notice } from "../../plugin/notice.ts";

/** A provider has tens of models; a list that is longer is forgotten from its beginning, and then told once more. */
const MOST = 10_000;

type Rests = Extract<Notice, { type: "rests" }>;
type Recovered = Extract<Notice, { type: "recovered" }>;
type Quarantined = Extract<Notice, { type: "quarantined" }>;
type Released = Extract<Notice, { type: "released" }>;

export class NoticeLog {
  readonly #log: Log;
  /** Hooks of plugins that are not asked, since when. */
  readonly #kept = new Map<string, number>();
  /** What rests, since when. */
  readonly #resting = new Map<string, number>();

  constructor(log: Log) {
    this.#log = log;
  }

  told(notice: Notice): void {
    if (notice.type === "rests") this.#rests(notice);
    else if (notice.type === "recovered") this.#recovered(notice);
    else if (notice.type === "quarantined") this.#quarantined(notice);
    else if (notice.type === "released") this.#released(notice);
  }

  /** Every failure while it rests makes the rest longer, and is no news. */
  #rests({ provider, credential, model, kind, until, at }: Rests): void {
    const key = keyOf({ provider, credential, model });
    if (this.#resting.has(key)) return;
    if (this.#resting.size >= MOST) this.#resting.delete(this.#resting.keys().next().value!);
    this.#resting.set(key, at);
    const fields = { provider, credential, model: model ?? undefined, kind };
    this.#log.warn(
      { ...fields, until: new Date(until).toISOString() },
      "a provider has failed; until it answers again it is tried last",
    );
  }

  /** With several processes each of them finds out by itself. */
  #quarantined({ plugin, hook, why, until, failures, at }: Quarantined): void {
    const key = `${plugin} ${hook}`;
    if (this.#kept.has(key)) return;
    if (this.#kept.size >= MOST) this.#kept.delete(this.#kept.keys().next().value!);
    this.#kept.set(key, at);
    this.#log.error(
      { plugin, hook, why, failures, until: new Date(until).toISOString() },
      "a plugin has failed again and again; it is not asked for a while",
    );
  }

  #released({ plugin, hook, at }: Released): void {
    const key = `${plugin} ${hook}`;
    const since = this.#kept.get(key);
    if (since === undefined) return;
    this.#kept.delete(key);
    const seconds = Math.round((at - since) / 1_000);
    this.#log.info({ plugin, hook, seconds }, "a plugin does its work again");
  }

  #recovered({ provider, credential, model, at }: Recovered): void {
    const key = keyOf({ provider, credential, model });
    const since = this.#resting.get(key);
    if (since === undefined) return;
    this.#resting.delete(key);
    const seconds = Math.round((at - since) / 1_000);
    const fields = { provider, credential, model: model ?? undefined };
    this.#log.info({ ...fields, seconds }, "a provider answers again");
  }
}

const keyOf = ({
  provider,
  credential,
  model,
}: Pick<Recovered, "provider" | "credential" | "model">): string =>
  JSON.stringify([provider, credential, model]);
