// The `accounts` section: settings that several keys share. Accounts can be nested, and the
// settings of an outer account apply to all accounts in it.
import { LIMIT_SCHEMA, parseScopedLimit } from "../../plugin/store/limit.ts";
import type { LimitDisclosure, KeyDefaults } from "../../plugin/store/account.ts";
import type { Privacy } from "../../model/facts.ts";
import type { HeadersOut } from "../../model/values.ts";
import type { Schema } from "../schema-dialect.ts";
import type { PluginMount } from "../mount-plugins.ts";
import { problem } from "../problems.ts";
import { findCycles, textReferences, type NameReference } from "../name-references.ts";
import { closedObject, list, nonEmptyText, names } from "../schema-builders.ts";
import type { ReportProblem } from "../source/substitute-references.ts";
import { childPointer, isMapping, type Mapping } from "../source/config-tree.ts";
import type { AccountConfig } from "../gateway-config.ts";

/**
 * Maximum nesting depth. An organization, a team, a project, and a person use four levels. Each
 * reservation checks every level, so the depth is limited.
 */
export const MAX_ACCOUNT_DEPTH = 16;

/** Default limits and grants of new keys. */
export const KEY_DEFAULTS_SCHEMA: Schema = closedObject(
  {
    limits: list(LIMIT_SCHEMA, "Limits of a new key that sets none of the same unit", {
      minItems: 1,
    }),
  },
  { description: "Default settings of new keys" },
);

export const ACCOUNT_SCHEMA: Schema = closedObject(
  {
    parent: nonEmptyText("Key of the parent account"),
    name: nonEmptyText("Display name"),
    limits: list(LIMIT_SCHEMA, "Limits that all keys of the account share", { minItems: 1 }),
    models: names(
      "Models that keys of the account may use. Each * matches any text. Default: all",
      {
        minItems: 1,
      },
    ),
    frontends: names("Frontends that keys of the account may use. Default: all", { minItems: 1 }),
    tools: names(
      "Tools that keys of the account may call, as <server>/<tool>. Each * matches any text. Default: all",
    ),
    privacy: {
      enum: ["off", "required", "strict"],
      description: "Minimum privacy level of requests with these keys",
    },
    labels: {
      type: "object",
      additionalProperties: { type: "string" },
      description: "Labels that are stored with every ledger row of these keys",
    },
    key_defaults: KEY_DEFAULTS_SCHEMA,
    disclose_limits: {
      enum: ["full", "hidden"],
      description:
        "Whether clients with these keys can see limits. full: with numbers. hidden: " +
        "only the retry time. Default: full",
    },
  },
  { type: ["object", "null"] },
);

export const accountNames = (root: Mapping): readonly string[] =>
  isMapping(root["accounts"]) ? Object.keys(root["accounts"]) : [];

/** Checks conditions that the schema cannot express: unknown names, cycles, and the depth. */
export function checkAccounts(
  root: Mapping,
  mounts: readonly PluginMount[],
  report: ReportProblem,
): void {
  const raw = root["accounts"];
  if (!isMapping(raw)) return;
  const frontends = mounts.filter((m) => m.kind === "frontend").map((m) => m.definition.name);
  const parents = new Map<string, readonly NameReference[]>();
  for (const [id, account] of Object.entries(raw)) {
    if (!isMapping(account)) continue;
    const at = childPointer("/accounts", id);
    for (const { name, pointer } of textReferences(
      account["frontends"],
      childPointer(at, "frontends"),
    ))
      if (!frontends.includes(name)) report(problem.unknownFrontend(name, frontends), pointer);
    const parent = account["parent"];
    if (typeof parent !== "string") continue;
    const use = { name: parent, pointer: childPointer(at, "parent") };
    if (Object.hasOwn(raw, parent)) parents.set(id, [use]);
    else
      report(
        problem.unknownAccount(
          parent,
          Object.keys(raw).filter((each) => each !== id),
        ),
        use.pointer,
      );
  }
  const found = findCycles(parents);
  for (const { path, pointer } of found) report(problem.accountCycle(path), pointer);
  if (found.length === 0) checkDepth(parents, report);
}

/**
 * Reports only the outermost account that is too deep. Accounts that are nested in it would repeat
 * the problem.
 */
function checkDepth(
  parents: ReadonlyMap<string, readonly NameReference[]>,
  report: ReportProblem,
): void {
  for (const [id, [use]] of parents) {
    const path = [id];
    for (let up: NameReference | undefined = use; up; up = parents.get(up.name)?.[0])
      path.unshift(up.name);
    if (path.length === MAX_ACCOUNT_DEPTH + 1) report(problem.accountTooDeep(path), use!.pointer);
  }
}

export const toAccountConfigs = (raw: Mapping): ReadonlyMap<string, AccountConfig> =>
  new Map(
    Object.entries(raw).map(([id, account]) => [
      id,
      toAccountConfig(id, isMapping(account) ? account : {}),
    ]),
  );

const toAccountConfig = (id: string, raw: Mapping): AccountConfig => ({
  id,
  parent: raw["parent"] as string | undefined,
  name: raw["name"] as string | undefined,
  limits: ((raw["limits"] ?? []) as string[]).map((each) =>
    parseScopedLimit(each, `account:${id}`),
  ),
  models: raw["models"] as readonly string[] | undefined,
  frontends: raw["frontends"] as readonly string[] | undefined,
  tools: raw["tools"] as readonly string[] | undefined,
  privacy: raw["privacy"] as Privacy | undefined,
  labels: (raw["labels"] ?? {}) as HeadersOut,
  defaults: toKeyDefaults(raw["key_defaults"]),
  discloseLimits: (raw["disclose_limits"] ?? "full") as LimitDisclosure,
});

export function toKeyDefaults(raw: unknown): KeyDefaults | undefined {
  if (!isMapping(raw) || raw["limits"] === undefined) return undefined;
  const limits = (raw["limits"] as string[]).map((each) => {
    const { scope: _, ...limit } = parseScopedLimit(each, "");
    return limit;
  });
  return { limits };
}
