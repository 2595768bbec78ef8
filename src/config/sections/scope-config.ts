// The `scopes` section: limits of sessions, agents, end users, and other groups of requests that
// appear at run time, and limits of models, providers, and credentials.
import { parseDuration } from "../../lib/time/units.ts";
import { LIMIT_SCHEMA, parseScopedLimit } from "../../plugin/store/limit.ts";
import type { HeadersOut } from "../../model/values.ts";
import type { Schema } from "../schema-dialect.ts";
import { problem } from "../problems.ts";
import { accountNames } from "./account-config.ts";
import {
  findPattern,
  providerNameOf,
  textReferences,
  type DeclaredNames,
} from "../name-references.ts";
import { closedObject, duration, list, names, nonEmptyText } from "../schema-builders.ts";
import type { ReportProblem } from "../source/substitute-references.ts";
import { childPointer, isMapping, type Mapping } from "../source/config-tree.ts";
import type { ScopeConfig, ScopeSource } from "../gateway-config.ts";

/** Headers and fields in which known clients send the ID of a session or of an agent. */
const READY_SOURCES: Readonly<Record<string, readonly string[]>> = {
  session: [
    "header:x-claude-code-session-id",
    "header:session-id",
    "header:session_id",
    "header:thread-id",
    "body:/prompt_cache_key",
  ],
  agent: ["header:x-claude-code-agent-id"],
  end_user: ["body:/user", "body:/metadata/user_id", "body:/safety_identifier"],
};

/** Names that reports use for other dimensions. */
const RESERVED_NAMES = [
  "account",
  "accounts",
  "credential",
  "day",
  "downgraded",
  "frontend",
  "hour",
  "key",
  "label",
  "labels",
  "model",
  "outcome",
  "price",
  "provider",
  "state",
];

const HOUR_MS = 3_600_000;

export const SCOPE_NAME_SCHEMA: Schema = {
  type: "string",
  pattern: `^(?!(?:${RESERVED_NAMES.join("|")})$)[a-z][a-z0-9_-]{0,31}$`,
  "x-expects":
    "a scope's key: up to 32 lowercase letters, digits, dashes, and underscores, and no other " +
    "dimension of a report, such as model",
};

export const SCOPE_SCHEMA: Schema = closedObject(
  {
    from: list(
      {
        type: "string",
        pattern:
          "^(?:session|agent|end_user|key|account|header:[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}|body:(?:/[^/]{1,64}){1,8}|label:.{1,64})$",
        "x-expects":
          "session, agent, end_user, key, account, header:<name>, body:/<field>, or label:<name>",
      },
      "Sources of the value that names a member, in this order: header:<name>, body:/<field>, " +
        "label:<name>, key, account, or a ready-made list: session, agent, end_user. The first " +
        "source with a value is used. If unset, the scope has one member",
      { minItems: 1, maxItems: 16 },
    ),
    within: {
      enum: ["key", "account", "gateway"],
      description:
        "Owner within which a value is unique. Default: key, or gateway if `from` is not set",
    },
    models: names("Models that the scope counts. Each * matches any text. Default: all", {
      minItems: 1,
    }),
    providers: names("Providers that the scope counts. Default: all", { minItems: 1 }),
    credentials: names("Names of credentials that the scope counts. Default: all", {
      minItems: 1,
    }),
    labels: {
      type: "object",
      additionalProperties: { type: "string" },
      description: "Labels that a request must have. Default: none",
    },
    accounts: names("Accounts that the scope counts, with the accounts nested under them", {
      minItems: 1,
    }),
    limits: list(LIMIT_SCHEMA, "Limits of each member", { minItems: 1 }),
    idle: duration(
      "Time without a request after which a member's limits in total start again, from 1h to 24d",
      "24h",
    ),
    max_members: {
      type: "integer",
      minimum: 1,
      maximum: 100_000,
      default: 10_000,
      description:
        "Maximum number of members of each owner. Further values are rejected until a member " +
        "becomes idle",
    },
    overflow: {
      default: "refuse",
      if: { type: "string" },
      then: { enum: ["refuse", "warn"] },
      else: closedObject(
        {
          downgrade: nonEmptyText("Model that serves the request instead"),
          limits: list(LIMIT_SCHEMA, "Limits of each member for that model", { minItems: 1 }),
        },
        { required: ["downgrade"] },
      ),
      "x-expects": "refuse, warn, or { downgrade: <model> }",
      description:
        "Policy for a request that exceeds a limit. refuse: it is rejected. warn: it is " +
        "served with the header x-tollgate-scope. { downgrade: <model> }: another model serves it",
    },
    missing: {
      enum: ["skip", "refuse"],
      default: "skip",
      description:
        "Policy for a request without a value. skip: the scope does not count it. refuse: " +
        "it is rejected",
    },
    label: {
      enum: ["text", "hash", "none"],
      default: "text",
      description:
        "How ledger rows contain the value, in a label with the scope's name. With Service-ZDR, " +
        "text becomes hash",
    },
    hold: {
      enum: ["hard", "expected", "soft"],
      description: "Amount that a budget reserves per request, as in the middleware limits",
    },
  },
  { required: ["limits"] },
);

/** Checks conditions that the schema cannot express: unknown names, and the idle time. */
export function checkScopes(root: Mapping, declared: DeclaredNames, report: ReportProblem): void {
  const raw = root["scopes"];
  if (!isMapping(raw)) return;
  const accounts = accountNames(root);
  const models = isMapping(root["models"]) ? Object.keys(root["models"]) : [];
  for (const [name, scope] of Object.entries(raw)) {
    if (!isMapping(scope)) continue;
    const at = childPointer("/scopes", name);
    for (const one of textReferences(scope["providers"], childPointer(at, "providers")))
      if (!declared.providers.includes(one.name))
        report(problem.unknownProvider(one.name, declared.providers), one.pointer);
    for (const one of textReferences(scope["accounts"], childPointer(at, "accounts")))
      if (!accounts.includes(one.name))
        report(problem.unknownAccount(one.name, accounts), one.pointer);
    const idle = typeof scope["idle"] === "string" ? parseDuration(scope["idle"]) : undefined;
    if (idle !== undefined && idle < HOUR_MS)
      report(problem.badValue("idle must be at least 1h"), childPointer(at, "idle"));
    const overflow = scope["overflow"];
    const other = isMapping(overflow) ? overflow["downgrade"] : undefined;
    if (typeof other !== "string" || models.includes(other)) continue;
    const pointer = childPointer(childPointer(at, "overflow"), "downgrade");
    const provider = providerNameOf(other);
    if (declared.providers.includes(provider) || findPattern(other, models) !== undefined) continue;
    if (provider === "") report(problem.unknownModel(other, models), pointer);
    else report(problem.unknownProvider(provider, declared.providers), pointer);
  }
}

export const toScopeConfigs = (
  scopes: Readonly<Record<string, Mapping>>,
): ReadonlyMap<string, ScopeConfig> =>
  new Map(Object.entries(scopes).map(([name, raw]) => [name, toScopeConfig(name, raw)]));

function toScopeConfig(name: string, raw: Mapping): ScopeConfig {
  const overflow = raw["overflow"];
  const from = (raw["from"] ?? []) as readonly string[];
  return {
    name,
    from: from.flatMap((text) => (READY_SOURCES[text] ?? [text]).map(toScopeSource)),
    within: (raw["within"] ?? (from.length > 0 ? "key" : "gateway")) as ScopeConfig["within"],
    models: raw["models"] as readonly string[] | undefined,
    providers: raw["providers"] as readonly string[] | undefined,
    credentials: raw["credentials"] as readonly string[] | undefined,
    labels: (raw["labels"] ?? {}) as HeadersOut,
    accounts: raw["accounts"] as readonly string[] | undefined,
    limits: toLimits(raw["limits"]),
    idleMs: parseDuration(raw["idle"] as string)!,
    maxMembers: raw["max_members"] as number,
    overflow: isMapping(overflow) ? "downgrade" : (overflow as "refuse" | "warn"),
    downgrade: isMapping(overflow)
      ? { model: overflow["downgrade"] as string, limits: toLimits(overflow["limits"]) }
      : undefined,
    missing: raw["missing"] as ScopeConfig["missing"],
    label: raw["label"] as ScopeConfig["label"],
    hold: raw["hold"] as ScopeConfig["hold"],
  };
}

const toLimits = (texts: unknown) =>
  ((texts ?? []) as readonly string[]).map((text) => {
    const { scope: _, ...limit } = parseScopedLimit(text, "");
    return limit;
  });

function toScopeSource(text: string): ScopeSource {
  const colon = text.indexOf(":");
  if (colon < 0) return { text, kind: text as "key" | "account" };
  const [kind, name] = [text.slice(0, colon) as "header" | "body" | "label", text.slice(colon + 1)];
  if (kind === "body") return { text, kind, path: name.slice(1).split("/") };
  return { text, kind, name: kind === "header" ? name.toLowerCase() : name };
}
