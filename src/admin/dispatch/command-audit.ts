// Writes changes to the audit log: each command before it takes effect, and its result afterwards.
// A change that cannot be written to the audit log is rejected.
import type { Log } from "../../lib/log/log.ts";
import type { SecretMask } from "../../lib/log/secret-mask.ts";
import { nextRequestId } from "../../lib/request-id.ts";
import { fail, getFault } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import type { AuditLog } from "../../plugin/store/audit.ts";
import { withTimeout } from "../../runtime/ledger/queued-command.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Services } from "../../runtime/services.ts";
import { jsonReplacer } from "../socket/control-client.ts";
import type { CommandPrincipal } from "../../runtime/access/principal.ts";

/** Timeout of the store, in milliseconds. Afterwards the entry counts as not written. */
const TIMEOUT_MS = 5_000;
/** Maximum length of the input, and of the state before the change, in characters of JSON. */
const MAX_JSON_CHARS = 4_096;

export interface AuditedRun {
  readonly command: string;
  readonly target: string | undefined;
  readonly before: unknown;
  readonly after: unknown;
}

/** Audit log of the store. If unset, the store has no audit log, and commands run without one. */
export interface CommandAuditOptions {
  readonly auditLog: AuditLog | undefined | null;
  readonly mask: Pick<SecretMask, "maskText">;
  readonly now: () => number;
  readonly log: Pick<Log, "error">;
}

export const createCommandAudit = ({
  store,
  mask,
  log,
}: Pick<Services, "store" | "mask" | "log">) =>
  new CommandAudit({ auditLog: store.audit, mask, now: wallClock, log });

export class CommandAudit {
  readonly #options: CommandAuditOptions;

  constructor(options: CommandAuditOptions) {
    this.#options = options;
  }

  async run<T>(
    { command, target, before, after }: AuditedRun,
    { name: actor, role, channel, address }: CommandPrincipal,
    work: () => Promise<T>,
  ): Promise<T> {
    const { auditLog, now } = this.#options;
    if (!auditLog) return work();
    const id = nextRequestId();
    const caller = { actor, role, channel, ...(address !== undefined && { address }) };
    const what = {
      command,
      ...(target !== undefined && { target: this.#options.mask.maskText(target).slice(0, 512) }),
      ...this.#snapshot("before", before),
      ...this.#snapshot("after", after),
    };
    await withTimeout(TIMEOUT_MS, auditLog.begin({ id, at: now(), ...caller, ...what })).catch(
      (cause: unknown) =>
        fail("unavailable", "Nothing was changed, because the audit log cannot be written.", {
          code: "audit_failed",
          cause,
        }),
    );
    try {
      const done = await work();
      await this.#recordEnd({ id, ...(isRejectedResult(done) ? REJECTED : { outcome: "done" }) });
      return done;
    } catch (error) {
      const { code, kind = "internal" } = getFault(error) ?? {};
      await this.#recordEnd({ id, outcome: "failed", code: code ?? kind });
      throw error;
    }
  }

  /**
   * Records a login or logout. A failure to record is ignored, because operators need the console
   * to find out why the audit log fails.
   */
  async recordSignIn(
    command: string,
    { name: actor, role, channel, address }: CommandPrincipal,
  ): Promise<void> {
    const { auditLog, now, log } = this.#options;
    if (!auditLog) return;
    const id = nextRequestId();
    const caller = { actor, role, channel, ...(address !== undefined && { address }) };
    try {
      await withTimeout(TIMEOUT_MS, auditLog.begin({ id, at: now(), ...caller, command }));
      await this.#recordEnd({ id, outcome: "done" });
    } catch (err) {
      log.error({ err, command, actor }, "audit record of sign-in or sign-out not written");
    }
  }

  async #recordEnd(end: { id: string; outcome: "done" | "failed"; code?: string }): Promise<void> {
    const { auditLog, now, log } = this.#options;
    await withTimeout(TIMEOUT_MS, auditLog!.end({ ...end, at: now() })).catch((err: unknown) =>
      log.error({ err, command: end.id }, "audit record of command result not written"),
    );
  }

  #snapshot(as: "before" | "after", value: unknown): { [side: string]: Json } {
    if (value === undefined) return {};
    const text = this.#options.mask.maskText(JSON.stringify(value, jsonReplacer));
    if (text.length > MAX_JSON_CHARS) return { [as]: { characters: text.length } };
    const redacted = redact(JSON.parse(text) as Json);
    return isEmpty(redacted) ? {} : { [as]: redacted };
  }
}

const REJECTED = { outcome: "failed", code: "refused" } as const;

/** Whether the result reports that the command changed nothing, such as a rejected reload. */
const isRejectedResult = (answer: unknown): boolean =>
  typeof answer === "object" && answer !== null && "ok" in answer && answer.ok === false;

const isEmpty = (raw: Json): boolean =>
  typeof raw === "object" && raw !== null && Object.keys(raw).length === 0;

/**
 * Members that may identify a person. Entries of the hash chain cannot be erased, so only the
 * presence of these members is recorded and not their value.
 */
const PERSONAL_MEMBERS = new Set(["name", "labels", "reason", "keyName"]);
/** Members that are omitted: secrets, their hashes, and derived counts. */
const OMITTED_MEMBERS = new Set(["secret", "digest", "token", "limitUsage", "warnings"]);

function redact(value: Json): Json {
  if (Array.isArray(value)) return value.map(redact);
  if (typeof value !== "object" || value === null) return value;
  const redacted: { [name: string]: Json } = {};
  for (const [name, each] of Object.entries(value as JsonObject)) {
    if (OMITTED_MEMBERS.has(name) || each === undefined) continue;
    redacted[name] = PERSONAL_MEMBERS.has(name) && each !== null ? "(not kept)" : redact(each);
  }
  return redacted;
}
