// The schema's forms. A new form is expanded first: what it adds stands beside what older gateways use, and both serve. It is contracted when no
// gateway of an older form lives: what only they used goes.
import { fail } from "tollgate/plugin";
import { all } from "./exact.ts";
import { closer } from "./closer.ts";
import { erasingIn } from "./erased.ts";
import { gate } from "./gate.ts";
import type { Ask, Row } from "./line.ts";
import { pruning } from "./pruning.ts";
import { slicing } from "./slicing.ts";
import { SUMMED, summing } from "./summing.ts";
import { tables } from "./tables.ts";
import { isContended } from "./trouble.ts";

/** One step. */
export interface Form {
  readonly form: number;
  readonly says: string;
  /** Gateways of which form serve beside it still. */
  readonly least: number;
  expand(s: string): string;
  contract?(s: string): string;
}

/** In their order; what has been released is never changed. */
export const FORMS: readonly Form[] = [
  {
    form: 1,
    says: "tables, the gate, the closer, sums of days, and of what was pruned, slices",
    least: 1,
    expand: (s) =>
      tables(s) + gate(s) + closer(s) + summing(s) + pruning(s) + erasingIn(s) + slicing(s),
  },
];

/** What this package knows. */
export const KNOWN = FORMS.at(-1)!.form;

/** Roles that are given rights, besides the owner of the schema. */
export interface Roles {
  readonly run?: string | undefined;
  readonly read?: string | undefined;
}

/** What the database has, and what is still to be done. */
export interface Standing {
  /** 0: nothing is there. */
  readonly form: number;
  readonly known: number;
  readonly expand: readonly number[];
  readonly contract: readonly number[];
  /** Why a contraction has to wait: gateways that live, of an older form. */
  readonly older: number;
}

/** Reads only. */
export async function standing(ask: Ask, s: string): Promise<Standing> {
  const [there] = await ask({
    text: "SELECT to_regclass($1)::text AS form, current_setting('server_encoding') AS encoding",
    values: [`${s}.form`],
  });
  // Also the order in which meters are locked is that of their bytes. Without an encoding texts are kept as they are sent, in UTF-8.
  if (!["UTF8", "SQL_ASCII"].includes(there?.["encoding"] ?? ""))
    fail(
      "invalid",
      `The database keeps texts as ${there?.["encoding"]}, which has no place for some that calls have. Make another one: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.`,
      { code: "not_utf8" },
    );
  if (there?.["form"] == null)
    return { form: 0, known: KNOWN, expand: FORMS.map(({ form }) => form), contract: [], older: 0 };
  const [rows, nodes] = await all<readonly Row[]>([
    ask({ text: `SELECT form, least, contracted::text FROM ${s}.form ORDER BY form` }),
    ask({
      text: `SELECT min(form) AS form, count(*) FILTER (WHERE form < ${KNOWN}) AS older FROM ${s}.node WHERE state = 'live'`,
    }),
  ]);
  const form = Number(rows!.at(-1)?.["form"] ?? 0);
  const least = Number(rows!.at(-1)?.["least"] ?? 0);
  if (form > KNOWN && least > KNOWN)
    fail(
      "invalid",
      `The database has form ${form}, which gateways of form ${least} and newer can use; this one knows ${KNOWN}. Run a newer tollgate-store-postgres.`,
      { code: "newer_form" },
    );
  const done = new Set(
    rows!.filter((row) => row["contracted"] === "true").map((row) => Number(row["form"])),
  );
  return {
    form,
    known: KNOWN,
    expand: FORMS.filter((each) => each.form > form).map((each) => each.form),
    contract: FORMS.filter(
      (each) => each.contract && each.form <= form && !done.has(each.form),
    ).map((each) => each.form),
    older: Number(nodes![0]?.["older"] ?? 0),
  };
}

/** Statements that bring the schema to the newest form, without running them. */
export const statements = (
  { form, expand, contract, older }: Standing,
  s: string,
  roles: Roles,
): readonly string[] => [
  ...(form === 0 ? [beginning(s)] : []),
  ...FORMS.filter((each) => expand.includes(each.form)).map((each) => each.expand(s)),
  ...(older > 0
    ? []
    : FORMS.filter((each) => contract.includes(each.form)).map((each) => each.contract!(s))),
  rights(s, roles),
];

const beginning = (s: string): string => `CREATE SCHEMA IF NOT EXISTS ${s};
CREATE TABLE IF NOT EXISTS ${s}.form (form int PRIMARY KEY, least int NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),
  contracted boolean NOT NULL DEFAULT false);`;

/** One gateway at a time: the others wait for the lock, and find it done. Says which forms were made. */
export async function migrate(ask: Ask, s: string, roles: Roles): Promise<readonly number[]> {
  for (let tries = 1; ; tries++)
    try {
      return await migrated(ask, s, roles);
    } catch (error) {
      // Before there is a table there is nothing to lock: of two that make the schema at once the later one is refused, in one of these ways.
      if (tries === 5 || !isContended(error)) throw error;
    }
}

async function migrated(ask: Ask, s: string, roles: Roles): Promise<readonly number[]> {
  await standing(ask, s);
  const made: number[] = [];
  try {
    await ask({ text: "BEGIN" });
    await ask({ text: "SELECT set_config('lock_timeout', '10000', true)" });
    await ask({ text: beginning(s) });
    await ask({ text: `LOCK TABLE ${s}.form IN EXCLUSIVE MODE` });
    const [row] = await ask({ text: `SELECT coalesce(max(form), 0) AS form FROM ${s}.form` });
    for (const { form, least, expand } of FORMS)
      if (form > Number(row!["form"])) {
        await ask({ text: expand(s) });
        await ask({
          text: `INSERT INTO ${s}.form (form, least) VALUES ($1, $2)`,
          values: [form, least],
        });
        made.push(form);
      }
    const now = made.length > 0 ? undefined : await standing(ask, s);
    if (now && now.older === 0)
      for (const { form, contract } of FORMS)
        if (contract && now.contract.includes(form)) {
          await ask({ text: contract(s) });
          await ask({
            text: `UPDATE ${s}.form SET contracted = true WHERE form = $1`,
            values: [form],
          });
        }
    await ask({ text: rights(s, roles) });
    await ask({ text: `SELECT ${s}.months_1(1)` });
    await ask({ text: "COMMIT" });
    return made;
  } catch (error) {
    await ask({ text: "ROLLBACK" }).catch(() => undefined);
    throw error;
  }
}

/** Rows of the ledger are added and read, by the one that runs; the reading role reads. Nothing else changes them but the owner's functions. */
function rights(s: string, { run, read }: Roles): string {
  const lines = [`REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ${s} FROM PUBLIC;`];
  if (run !== undefined)
    lines.push(
      `GRANT USAGE ON SCHEMA ${s} TO ${run};`,
      `GRANT SELECT ON ALL TABLES IN SCHEMA ${s} TO ${run};`,
      `GRANT INSERT ON ${s}.booked, ${s}.terms, ${s}.batch, ${s}.note, ${s}.price, ${s}.shared, ${s}.erased TO ${run};`,
      `GRANT INSERT, UPDATE ON ${s}.node, ${s}.key, ${s}.account, ${s}.audit, ${s}.fleet TO ${run};`,
      `GRANT INSERT, UPDATE, DELETE ON ${s}.meter, ${s}.open TO ${run};`,
      `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${s} TO ${run};`,
    );
  if (read !== undefined)
    lines.push(
      `GRANT USAGE ON SCHEMA ${s} TO ${read};`,
      `GRANT SELECT ON ${s}.entry, ${s}.booked, ${s}.terms, ${s}.batch, ${s}.open, ${s}.meter, ${s}.node, ${s}.form, ${s}.fleet, ${s}.summed, ${SUMMED.map((table) => `${s}.${table}`).join(", ")}, ${s}.chain, ${s}.note, ${s}.key, ${s}.account, ${s}.base, ${s}.sums, ${s}.erased TO ${read};`,
    );
  return lines.join("\n");
}
