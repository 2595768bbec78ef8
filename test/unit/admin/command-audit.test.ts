// A command that cannot be audited does not run, and audit rows contain no secret.
import fc from "fast-check";
import { expect, it } from "vitest";
import type { AuditEnd, AuditEntry, AuditLog } from "tollgate/plugin";
import { createAuditCommands } from "../../../src/admin/commands/admin-commands.ts";
import { CommandAudit } from "../../../src/admin/dispatch/command-audit.ts";
import { SHELL_PRINCIPAL } from "../../../src/runtime/access/principal.ts";
import type { CommandSpec } from "../../../src/admin/schema/command-spec.ts";
import { CommandDispatcher } from "../../../src/admin/dispatch/command-dispatcher.ts";
import { COMMAND_SPECS } from "../../../src/admin/schema/command-specs.ts";
import { getFault, fail } from "../../../src/model/error.ts";
import { trialCount } from "../../kit/law-effort.ts";

function written(more: Partial<AuditLog> = {}) {
  const rows: (AuditEntry | AuditEnd)[] = [];
  const errors: string[] = [];
  const log: AuditLog = {
    begin: async (entry) => void rows.push(entry),
    end: async (end) => void rows.push(end),
    list: async () => ({ items: [] }),
    ...more,
  };
  const mask = { maskText: (text: string) => text.replaceAll("sk-hidden", "sk-***") };
  const told = { error: (_: object, message: string) => void errors.push(message) };
  return {
    rows,
    errors,
    auditing: new CommandAudit({ auditLog: log, mask, now: () => 7, log: told }),
  };
}

const work = { command: "keys.update", target: "k1", before: undefined, after: undefined };

it("a row that cannot be written rejects the command before it runs", async () => {
  let done = 0;
  const { auditing, rows } = written({ begin: async () => fail("internal", "The disk is full.") });
  const refused = await auditing.run(work, SHELL_PRINCIPAL, async () => ++done).catch(getFault);
  expect([refused, done, rows]).toMatchObject([
    { kind: "unavailable", code: "audit_failed" },
    0,
    [],
  ]);
});

it("the row is written before the command runs, and its result afterwards", async () => {
  const { auditing, rows } = written();
  const seen = await auditing.run(work, SHELL_PRINCIPAL, async () => rows.length);
  expect([seen, rows]).toMatchObject([
    1,
    [
      {
        at: 7,
        actor: "shell",
        role: "owner",
        channel: "socket",
        command: "keys.update",
        target: "k1",
      },
      { outcome: "done" },
    ],
  ]);
  expect(rows[1]!.id).toBe(rows[0]!.id);
});

it("a sign-in has a row of its own, and is accepted if none can be written", async () => {
  const { auditing, rows } = written();
  await auditing.recordSignIn("sign-in", {
    ...SHELL_PRINCIPAL,
    channel: "session",
    address: "127.0.0.1",
  });
  expect(rows).toMatchObject([
    { command: "sign-in", actor: "shell", channel: "session", address: "127.0.0.1" },
    { outcome: "done" },
  ]);
  const full = written({ begin: async () => fail("internal", "The disk is full.") });
  await full.auditing.recordSignIn("sign-in", SHELL_PRINCIPAL);
  expect(full.errors).toEqual(["audit record of sign-in or sign-out not written"]);
});

it("a failed command records its error, and a result that cannot be written is no failure", async () => {
  const failing = written();
  const broken = async () => fail("conflict", "No.", { code: "version_conflict" });
  expect(
    getFault(await failing.auditing.run(work, SHELL_PRINCIPAL, broken).catch((e: unknown) => e)),
  ).toMatchObject({
    code: "version_conflict",
  });
  expect(failing.rows[1]).toMatchObject({ outcome: "failed", code: "version_conflict" });
  const endless = written({ end: async () => fail("internal", "The disk is full.") });
  expect(await endless.auditing.run(work, SHELL_PRINCIPAL, async () => "done")).toBe("done");
  expect(endless.errors).toHaveLength(1);
});

it("a row contains no secret, no personal data, and nothing large", async () => {
  const { auditing, rows } = written();
  const before = {
    keys: [
      {
        id: "k1",
        name: "Anna",
        digest: "d".repeat(64),
        labels: { user: "4711" },
        models: ["a/*"],
        limitUsage: [1],
      },
    ],
  };
  const after = {
    name: null,
    secret: "tg_x",
    labels: { user: "4711" },
    url: "https://sk-hidden@host",
  };
  await auditing.run({ ...work, before, after }, SHELL_PRINCIPAL, async () => {});
  expect(rows[0]).toMatchObject({
    before: { keys: [{ id: "k1", name: "(not kept)", labels: "(not kept)", models: ["a/*"] }] },
    after: { name: null, labels: "(not kept)", url: "https://sk-***@host" },
  });
  expect(JSON.stringify(rows)).not.toMatch(/Anna|4711|tg_x|dddd|limitUsage|sk-hidden/);
  await auditing.run(
    { ...work, after: { text: "x".repeat(5_000) } },
    SHELL_PRINCIPAL,
    async () => {},
  );
  expect(rows[2]).toMatchObject({ after: { characters: 5_011 } });
});

it("a result that reports no change is a failure", async () => {
  const { auditing, rows } = written();
  const reload = { ...work, command: "reload", target: undefined };
  await auditing.run(reload, SHELL_PRINCIPAL, async () => ({ ok: false, problems: [] }));
  await auditing.run(reload, SHELL_PRINCIPAL, async () => ({ ok: true, problems: [] }));
  expect([rows[1], rows[3]]).toMatchObject([
    { outcome: "failed", code: "refused" },
    { outcome: "done" },
  ]);
});

/** Commands that change the whole gateway, or many objects. */
const WHOLE = ["reload", "ledger.prune", "erase", "keys.import", "console"];

it("every command that changes something names its target, also one that it is about to create", async () => {
  const facts: Readonly<Record<string, CommandSpec>> = COMMAND_SPECS;
  const unnamed = Object.entries(facts).flatMap(([name, { writes, changedRecord, createId }]) =>
    writes && !changedRecord && !createId ? [name] : [],
  );
  expect(unnamed.toSorted()).toEqual(WHOLE.toSorted());

  const { auditing, rows } = written();
  const made: (string | undefined)[] = [];
  const gate = new CommandDispatcher({
    commands: { "keys.create": async (_input, _giver, id) => void made.push(id) },
    pluginCommands: { find: () => undefined, all: () => [] },
    scopes: {} as never,
    audit: auditing,
  });
  await gate.dispatch("keys.create", { name: "laptop" }, SHELL_PRINCIPAL);
  expect(made[0]).toMatch(/^[0-9A-Za-z]{10}$/);
  expect(rows[0]).toMatchObject({ command: "keys.create", target: made[0] });
});

it("audit.list returns the entries of a range, each once, for any page size", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(40), { maxLength: 60 }),
      fc.option(fc.nat(40), { nil: undefined }),
      fc.option(fc.nat(45), { nil: undefined }),
      fc.integer({ min: 1, max: 7 }),
      async (moments, from, to, limit) => {
        const all = moments
          .toSorted((a, b) => b - a)
          .map((at, i) => ({ at, id: `e${i}`, command: "keys.create" }));
        const list = async ({ after = "0", limit: most = 100 } = {}) => {
          const end = Number(after) + most;
          const items = all.slice(Number(after), end);
          return { items, ...(end < all.length && { next: `${end}` }) };
        };
        const command = createAuditCommands({ list } as never)["audit.list"];
        const found: string[] = [];
        let after: string | undefined;
        do {
          const input = {
            limit,
            ...(from !== undefined && { from }),
            ...(to !== undefined && { to }),
          };
          const page = (await command({ ...input, ...(after !== undefined && { after }) })) as {
            items: { id: string }[];
            next?: string;
          };
          expect(page.items.length).toBeLessThanOrEqual(limit);
          found.push(...page.items.map(({ id }) => id));
          after = page.next;
        } while (after !== undefined);
        const within = all.filter(({ at }) => at >= (from ?? 0) && at < (to ?? Infinity));
        expect(found).toEqual(within.map(({ id }) => id));
      },
    ),
    { numRuns: trialCount(100) },
  );
});

it("commands that change something write a row, and so do these, without a target", () => {
  const rows: readonly (readonly [string, CommandSpec])[] = Object.entries(COMMAND_SPECS);
  const names = (fits: (of: CommandSpec) => boolean) =>
    rows.filter(([, of]) => fits(of)).map(([name]) => name);
  expect(names((of) => of.changedRecord !== undefined && !of.writes)).toEqual([]);
  expect(names((of) => of.changedRecord === undefined && of.writes).sort()).toEqual([
    "console",
    "erase",
    "keys.create",
    "keys.import",
    "ledger.prune",
    "reload",
  ]);
});
