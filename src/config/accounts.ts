// Accounts: what several keys share. Each may stand in another one, and what is said of the outer one holds for all in it.
import { LIMIT, limitOf } from "../plugin/limit.ts";
import type { AccountTells, KeyDefaults } from "../plugin/account.ts";
import type { Privacy } from "../model/facts.ts";
import type { HeadersOut } from "../model/values.ts";
import type { Schema } from "./dialect.ts";
import type { Mount } from "./mounts.ts";
import { problem } from "./problems.ts";
import { circles, texts, type NameUse } from "./references.ts";
import { closed, list, named, names } from "./shapes.ts";
import type { Report } from "./substitute.ts";
import { below, isMapping, type Mapping } from "./tree.ts";
import type { AccountConfig } from "./types.ts";

/** An organisation, a team, a project and a person are four. Each is looked at by every reserve, so there is an end. */
export const MOST_LEVELS = 16;

/** What a key gets that is made without it. */
export const KEY_DEFAULTS: Schema = closed(
  { limits: list(LIMIT, "Limits of a new key that has none of that unit", { minItems: 1 }) },
  { description: "What new keys get where they are made without it" },
);

export const ACCOUNT: Schema = closed(
  {
    parent: named("The account that it stands in, by its key"),
    name: named("What people call it"),
    limits: list(LIMIT, "What all of its keys may use together", { minItems: 1 }),
    models: names("Models that its keys may use. A * stands for any text. Default: all", {
      minItems: 1,
    }),
    frontends: names("Frontends that its keys may use; all when absent", { minItems: 1 }),
    privacy: {
      enum: ["off", "required", "strict"],
      description: "The least privacy of its keys' requests",
    },
    labels: {
      type: "object",
      additionalProperties: { type: "string" },
      description: "Kept with every ledger row of its keys",
    },
    defaults: KEY_DEFAULTS,
    tells: {
      enum: ["numbers", "nothing"],
      description:
        "What its keys' clients are told of its limits: numbers, or nothing but when to come again",
    },
  },
  { type: ["object", "null"] },
);

export const accountNames = (root: Mapping): readonly string[] =>
  isMapping(root["accounts"]) ? Object.keys(root["accounts"]) : [];

/** What the schema cannot say: names that are not there, circles, too many levels. */
export function checkAccounts(root: Mapping, mounts: readonly Mount[], report: Report): void {
  const said = root["accounts"];
  if (!isMapping(said)) return;
  const frontends = mounts.filter((m) => m.kind === "frontend").map((m) => m.definition.name);
  const parents = new Map<string, readonly NameUse[]>();
  for (const [id, account] of Object.entries(said)) {
    if (!isMapping(account)) continue;
    const at = below("/accounts", id);
    for (const { name, pointer } of texts(account["frontends"], below(at, "frontends")))
      if (!frontends.includes(name)) report(problem.unknownFrontend(name, frontends), pointer);
    const parent = account["parent"];
    if (typeof parent !== "string") continue;
    const use = { name: parent, pointer: below(at, "parent") };
    if (Object.hasOwn(said, parent)) parents.set(id, [use]);
    else
      report(
        problem.unknownAccount(
          parent,
          Object.keys(said).filter((each) => each !== id),
        ),
        use.pointer,
      );
  }
  const found = circles(parents);
  for (const { path, pointer } of found) report(problem.accountCycle(path), pointer);
  if (found.length === 0) checkLevels(parents, report);
}

/** Only the outermost account that is too deep is a problem: those inside of it would repeat it. */
function checkLevels(parents: ReadonlyMap<string, readonly NameUse[]>, report: Report): void {
  for (const [id, [use]] of parents) {
    const path = [id];
    for (let up: NameUse | undefined = use; up; up = parents.get(up.name)?.[0])
      path.unshift(up.name);
    if (path.length === MOST_LEVELS + 1) report(problem.accountTooDeep(path), use!.pointer);
  }
}

/** What has passed all of that. */
export const accountsOf = (said: Mapping): ReadonlyMap<string, AccountConfig> =>
  new Map(
    Object.entries(said).map(([id, account]) => [
      id,
      accountOf(id, isMapping(account) ? account : {}),
    ]),
  );

const accountOf = (id: string, said: Mapping): AccountConfig => ({
  id,
  parent: said["parent"] as string | undefined,
  name: said["name"] as string | undefined,
  limits: ((said["limits"] ?? []) as string[]).map((each) => limitOf(each, `account:${id}`)),
  models: said["models"] as readonly string[] | undefined,
  frontends: said["frontends"] as readonly string[] | undefined,
  privacy: said["privacy"] as Privacy | undefined,
  labels: (said["labels"] ?? {}) as HeadersOut,
  defaults: defaultsOf(said["defaults"]),
  tells: (said["tells"] ?? "numbers") as AccountTells,
});

/** What has passed the checks. */
export function defaultsOf(said: unknown): KeyDefaults | undefined {
  if (!isMapping(said) || said["limits"] === undefined) return undefined;
  const limits = (said["limits"] as string[]).map((each) => {
    const { scope: _, ...limit } = limitOf(each, "");
    return limit;
  });
  return { limits };
}
