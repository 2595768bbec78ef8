// What a command changes is written down before it takes effect, and how it ended afterwards. What cannot be written down is not done.
import type { Log } from "../../lib/log.ts";
import type { Mask } from "../../lib/mask.ts";
import { nextId } from "../../lib/id.ts";
import { fail, faultOf } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import type { AuditLog } from "../../plugin/audit.ts";
import { within } from "../services/queued-command.ts";
import { wallClock } from "../../lib/wall-clock.ts";
import type { Services } from "../services/services.ts";
import { plain } from "./asking.ts";
import type { Giver } from "./giver.ts";

/** A store that is silent for so long has not written it. */
const PATIENCE_MS = 5_000;
/** Of what was there, and of what was asked for, in characters of JSON. */
const LONGEST = 4_096;

export interface AuditedWork {
  readonly command: string;
  readonly target: string | undefined;
  readonly before: unknown;
  readonly after: unknown;
}

/** Absent in a store: its commands are done without. */
export interface AuditingOf {
  readonly log: AuditLog | undefined | null;
  readonly mask: Pick<Mask, "text">;
  readonly now: () => number;
  readonly told: Pick<Log, "error">;
}

export const auditingOf = ({ store, mask, log }: Pick<Services, "store" | "mask" | "log">) =>
  new Auditing({ log: store.audit, mask, now: wallClock, told: log });

export class Auditing {
  readonly #of: AuditingOf;

  constructor(of: AuditingOf) {
    this.#of = of;
  }

  async through<T>(
    { command, target, before, after }: AuditedWork,
    { name: actor, role, door, address }: Giver,
    work: () => Promise<T>,
  ): Promise<T> {
    const { log, now } = this.#of;
    if (!log) return work();
    const id = nextId();
    const giver = { actor, role, door, ...(address !== undefined && { address }) };
    const what = {
      command,
      ...(target !== undefined && { target: this.#of.mask.text(target).slice(0, 512) }),
      ...this.#said("before", before),
      ...this.#said("after", after),
    };
    await within(PATIENCE_MS, log.begin({ id, at: now(), ...giver, ...what })).catch(
      (cause: unknown) =>
        fail("unavailable", "What is changed cannot be written down, so nothing was changed.", {
          code: "audit_failed",
          cause,
        }),
    );
    try {
      const done = await work();
      await this.#end({ id, ...(isRefused(done) ? REFUSED : { outcome: "done" }) });
      return done;
    } catch (error) {
      const { code, kind = "internal" } = faultOf(error) ?? {};
      await this.#end({ id, outcome: "failed", code: code ?? kind });
      throw error;
    }
  }

  /** Signing in and out. It is done also where it cannot be written down: what keeps the log from growing is looked for in the console. */
  async noted(command: string, { name: actor, role, door, address }: Giver): Promise<void> {
    const { log, now, told } = this.#of;
    if (!log) return;
    const id = nextId();
    const giver = { actor, role, door, ...(address !== undefined && { address }) };
    try {
      await within(PATIENCE_MS, log.begin({ id, at: now(), ...giver, command }));
      await this.#end({ id, outcome: "done" });
    } catch (err) {
      told.error({ err, command, actor }, "a sign-in or sign-out could not be written down");
    }
  }

  async #end(end: { id: string; outcome: "done" | "failed"; code?: string }): Promise<void> {
    const { log, now, told } = this.#of;
    await within(PATIENCE_MS, log!.end({ ...end, at: now() })).catch((err: unknown) =>
      told.error({ err, command: end.id }, "how a command ended could not be written down"),
    );
  }

  #said(as: "before" | "after", value: unknown): { [side: string]: Json } {
    if (value === undefined) return {};
    const text = this.#of.mask.text(JSON.stringify(value, plain));
    if (text.length > LONGEST) return { [as]: { characters: text.length } };
    const said = unsaid(JSON.parse(text) as Json);
    return isEmpty(said) ? {} : { [as]: said };
  }
}

const REFUSED = { outcome: "failed", code: "refused" } as const;

/** Whether an answer says that nothing was changed, as that of a reload does. */
const isRefused = (answer: unknown): boolean =>
  typeof answer === "object" && answer !== null && "ok" in answer && answer.ok === false;

const isEmpty = (said: Json): boolean =>
  typeof said === "object" && said !== null && Object.keys(said).length === 0;

/** A person may be known by these, and what is in the chain cannot be erased: that they were said is kept, and not what. */
const PERSONAL = new Set(["name", "labels", "reason", "keyName"]);
/** Secrets, their hashes, and what only counts. */
const LEFT_OUT = new Set(["secret", "digest", "token", "counted", "warnings"]);

function unsaid(value: Json): Json {
  if (Array.isArray(value)) return value.map(unsaid);
  if (typeof value !== "object" || value === null) return value;
  const said: { [name: string]: Json } = {};
  for (const [name, each] of Object.entries(value as JsonObject)) {
    if (LEFT_OUT.has(name) || each === undefined) continue;
    said[name] = PERSONAL.has(name) && each !== null ? "(not kept)" : unsaid(each);
  }
  return said;
}
