// Validates a module's export: brand, kind, API version, name, and closed schemas. Parts that exist
// only after `setup` (routes, endpoints) are checked when they are used.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { findPackageRoot } from "../lib/package-root.ts";
import { findSchemaFlaw } from "../config/schema-dialect.ts";
import { problem, type ProblemText } from "../config/problems.ts";
import { isMapping } from "../config/source/config-tree.ts";
import type { Definition, PluginKind } from "../plugin/define.ts";
import { DEFINITION_MEMBERS, NEEDS_MEMBERS, findUnknownMember } from "../plugin/known-members.ts";
import { isShortName } from "./resolve-plugin.ts";

/** The version of `tollgate/plugin` that this gateway supports. */
export const API_VERSION = 1;

const PLUGIN_KINDS: readonly string[] = [
  "provider",
  "frontend",
  "middleware",
  "observer",
  "store",
] satisfies PluginKind[];

/** Validates a module. `label`: name of the plugin in messages. */
export function validateDefinition(
  module: unknown,
  kind: PluginKind,
  label: string,
  builtIn = false,
): { definition: Definition } | { words: ProblemText } {
  const all = (module ?? {}) as Record<string, unknown>;
  const main = all["default"];
  // A CommonJS module that was compiled from ESM has its default export one level deeper.
  const inner = isMapping(main) && main["__esModule"] === true ? main["default"] : undefined;
  const definition = [main, inner].find(isBranded);
  if (!definition) {
    const named = Object.keys(all).find((key) => key !== "default" && isBranded(all[key]));
    return { words: problem.noDefaultExport(label, named) };
  }
  const flaw = findFlaw(definition, kind, label, builtIn);
  return flaw ? { words: flaw } : { definition: definition as unknown as Definition };
}

const isBranded = (value: unknown): value is Record<string, unknown> =>
  isMapping(value) && PLUGIN_KINDS.includes(value["~tollgate"] as string);

function findFlaw(
  definition: Record<string, unknown>,
  kind: PluginKind,
  from: string,
  builtIn: boolean,
) {
  const { api, name, options, credential, setup } = definition;
  const is = definition["~tollgate"] as PluginKind;
  if (is !== kind) return problem.wrongKind(from, is, kind);
  if (api !== API_VERSION) return problem.apiMismatch(from, api, API_VERSION);
  const since = findSinceFlaw(definition["since"], from);
  if (since) return since;
  if (!isShortName(name))
    return problem.badDefinition(
      from,
      `its name ${JSON.stringify(name)} must be lowercase letters, digits, and single hyphens`,
    );
  const stranger = findUnknownMember(definition, DEFINITION_MEMBERS[kind]);
  if (stranger) return problem.unknownMember(from, "member", stranger.name, stranger.suggestion);
  const need = findNeedsFlaw(definition["needs"], from);
  if (need) return need;
  if (typeof setup !== "function") return problem.badDefinition(from, "it has no setup");
  if ((kind === "middleware" || kind === "observer") && definition["sends"] === undefined)
    return problem.badDefinition(
      from,
      'it does not declare where it sends user content (sends: "nowhere")',
    );
  for (const [what, schema] of Object.entries({ options, credential })) {
    if (schema === undefined) continue;
    const why = findSchemaProblem(schema, builtIn);
    if (why !== undefined) return problem.badSchema(from, what, why);
  }
  const keys = (schema: unknown) =>
    isMapping(schema) && isMapping(schema["properties"]) ? Object.keys(schema["properties"]) : [];
  const both = keys(options).find((key) => keys(credential).includes(key));
  return both === undefined
    ? undefined
    : problem.badDefinition(
        from,
        `${JSON.stringify(both)} is both an option and a credential field`,
      );
}

/** Checks that the gateway is not older than the plugin requires. */
function findSinceFlaw(since: unknown, from: string): ProblemText | undefined {
  if (since === undefined) return undefined;
  if (typeof since !== "string" || !/^\d{1,5}\.\d{1,5}(\.\d{1,5})?$/.test(since))
    return problem.badDefinition(from, "its `since` must be a version such as 1.3");
  const { version } = JSON.parse(readFileSync(join(findPackageRoot(), "package.json"), "utf8")) as {
    version: string;
  };
  return isOlderVersion(version, since) ? problem.sinceMismatch(from, since, version) : undefined;
}

/** Compares versions part by part, as numbers. */
export function isOlderVersion(version: string, since: string): boolean {
  const [ours, theirs] = [version, since].map((each) => each.split(/[.-]/).slice(0, 3).map(Number));
  for (const [i, part] of theirs!.entries())
    if (part !== (ours![i] ?? 0)) return (ours![i] ?? 0) < part;
  return false;
}

const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Unknown needs are rejected, because they have no effect. */
function findNeedsFlaw(needs: unknown, from: string): ProblemText | undefined {
  if (needs === undefined) return undefined;
  if (!isMapping(needs)) return problem.badDefinition(from, "its needs must be an object");
  const stranger = findUnknownMember(needs, NEEDS_MEMBERS, true);
  if (stranger) return problem.unknownMember(from, "need", stranger.name, stranger.suggestion);
  const { metadata, env, origins, files } = needs;
  if (metadata !== undefined && metadata !== true)
    return problem.badDefinition(from, "its needs.metadata must be true or omitted");
  const names = (env ?? []) as unknown;
  if (!Array.isArray(names) || !names.every((name) => ENV_NAME.test(String(name))))
    return problem.badDefinition(from, "its needs.env must be a list of variable names");
  for (const [what, list] of Object.entries({ origins, files }))
    if (list !== undefined && typeof list !== "function" && !Array.isArray(list))
      return problem.badDefinition(from, `its needs.${what} must be a list or a function`);
  return undefined;
}

/**
 * Checks an options schema. Built-in schemas are covered by tests. They skip the meta-schema, which
 * takes longer than all other checks.
 */
function findSchemaProblem(schema: unknown, builtIn: boolean): string | undefined {
  if (!isMapping(schema) || schema["type"] !== "object") return "its type must be object";
  if (schema["additionalProperties"] !== false)
    return "it must set additionalProperties: false, so that misspelled options are reported";
  const dialect = schema["$schema"];
  if (dialect !== undefined && !/draft-07/.test(String(dialect)))
    return `it must be draft-07, not ${String(dialect)}`;
  return builtIn ? undefined : findSchemaFlaw(schema);
}
