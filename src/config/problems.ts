// All messages about problems with a config or plugin, one factory each. The IDs are stable,
// because users search for them in CI logs. The message describes the error, and the hint describes
// the correction.
import { joinWords, nearest, plural } from "../lib/text.ts";
import { formatDuration } from "../lib/time/units.ts";
import type { PluginKind } from "../plugin/define.ts";
import type { SourceSpan } from "./source/source-span.ts";
import type { LocatedProblem } from "./gateway-config.ts";

export type ProblemText = Pick<LocatedProblem, "id" | "severity" | "message" | "hint">;

const createProblemFactory =
  (severity: LocatedProblem["severity"]) =>
  (id: string, message: string, hint?: string | false): ProblemText => ({
    id,
    severity,
    message,
    ...(hint ? { hint } : {}),
  });
const error = createProblemFactory("error");
const warning = createProblemFactory("warning");
const note = createProblemFactory("note");

export const quote = (text: string): string => JSON.stringify(text);
const quoteAlternatives = (words: readonly string[]) => joinWords(words.map(quote));

const suggestName = (word: string, known: Iterable<string>): string | false => {
  const near = nearest(word, known);
  return near !== undefined && `did you mean ${quote(near)}?`;
};

/** Suggests the nearest name, or lists all names if there are few. */
function suggestOrList(word: string, known: Iterable<string>): string | false {
  const words = [...known];
  const near = suggestName(word, words);
  if (near) return near;
  return words.length > 0 && words.length <= 8 && `known: ${joinWords(words.map(quote), "and")}`;
}

const describePosition = ({ source, start }: SourceSpan, from: string) => {
  const { line } = source.lines.linePos(start);
  return source.file === from ? `line ${line}` : `${source.file}:${line}`;
};

const KIND_WITH_ARTICLE = {
  provider: "a provider",
  frontend: "a frontend",
  middleware: "a middleware",
  observer: "an observer",
  store: "a store",
};
/** Section of each kind of plugin in gateway.yaml. */
export const SECTION_OF_KIND = {
  provider: "providers",
  frontend: "frontends",
  middleware: "middleware",
  observer: "observers",
  store: "store",
};

export const problem = {
  // ── files ──
  fileMissing: (file: string) => error("config/file-missing", `${file} not found`),
  configMissing: (file: string) =>
    error("config/file-missing", `${file} not found`, "run `tollgate init` to create one"),
  notAFile: (file: string) => error("config/not-a-file", `${file} is not a file`),
  tooLarge: (file: string, bytes: number) =>
    error("config/file-too-large", `${file} has ${bytes} bytes; the maximum is 1 MiB`),
  unreadable: (file: string, why: string) =>
    error("config/file-unreadable", `cannot read ${file}: ${why}`),
  notUtf8: (file: string) => error("config/not-utf8", `${file} is not valid UTF-8`),
  /** A file that a program has truncated and not written again yet. */
  emptyFile: (file: string) =>
    error(
      "config/empty-file",
      `${file} is empty`,
      "run `tollgate init` to print an example, or write {} to use only the defaults",
    ),
  lastProviderRemoved: (were: number) =>
    error(
      "config/no-provider-left",
      `this change removes ${were === 1 ? "the only provider" : `all ${were} providers`}`,
      "set allow_empty: true to allow this",
    ),

  // ── isolated plugins ──
  builtinNotIsolatable: (use: string) =>
    error(
      "config/isolated-builtin",
      `${quote(use)} is a built-in plugin and cannot run in its own process`,
      "remove isolate",
    ),
  kindNotIsolatable: (use: string, kind: PluginKind) =>
    error(
      "config/isolated-kind",
      `${quote(use)} cannot be ${KIND_WITH_ARTICLE[kind]}: only middleware can run outside the gateway`,
    ),
  networkNotDenied: (use: string) =>
    warning(
      "config/network-not-blocked",
      `this version of Node.js cannot block network access for ${quote(use)}`,
      "use Node.js 26 or newer",
    ),
  socketPath: (use: string) =>
    error("config/socket-path", `${quote(use)} has no socket path`, "write unix:./guard.sock"),

  // ── YAML ──
  syntax: (code: string, message: string, row: string) => {
    // Reports the probable mistake, because YAML reports only its consequence.
    if (code === "MULTIPLE_DOCS")
      return error(
        "config/syntax",
        "a second YAML document starts here",
        "a config file can contain only one document",
      );
    const bare = code === "UNEXPECTED_TOKEN" && /(^|[^"'\w])\$\{/.test(row);
    return bare
      ? error(
          "config/syntax",
          "an unquoted { starts a map, also in ${…}",
          'write "${env:NAME}" in quotes',
        )
      : error(
          "config/syntax",
          message,
          code === "BAD_INDENT"
            ? "check whether this line or one above it is indented differently than its neighbors"
            : code === "BLOCK_AS_IMPLICIT_KEY" &&
                "check whether a line is indented too far, or whether a value with a colon needs quotes",
        );
  },
  notAMapping: () =>
    error(
      "config/not-a-map",
      "expected keys and values",
      "run `tollgate init` to print an example",
    ),
  duplicateKey: (key: string, first: SourceSpan, from: string) =>
    error(
      "config/duplicate-key",
      `duplicate key ${quote(key)}`,
      `first defined on ${describePosition(first, from)}`,
    ),
  forbiddenKey: (key: string) =>
    error("config/forbidden-key", `${quote(key)} is not allowed as a key`),
  interpolatedKey: (key: string) =>
    error(
      "config/interpolated-key",
      `variables are not replaced in the key ${quote(key)}`,
      "use ${…} only in values",
    ),
  unknownAlias: (name: string) =>
    error("config/unknown-alias", `unknown alias *${name}`, `define &${name} above this line`),
  recursiveAlias: (name: string) =>
    error("config/recursive-alias", `alias *${name} contains itself`),
  tag: (tag: string) =>
    error("config/unknown-tag", `unknown tag ${tag.replace("tag:yaml.org,2002:", "!!")}`),
  tooManyValues: () =>
    error("config/too-many-values", "too many values; each use of an alias counts"),
  tooDeep: () => error("config/too-deep", "nested too deeply"),
  unsafeNumber: (text: string) =>
    error(
      "config/unsafe-number",
      `${text} cannot be represented exactly as a number`,
      "if it is a name, put it in quotes",
    ),

  // ── include ──
  includePath: () =>
    error("config/include-path", "include cannot contain ${…}", "write the path literally"),
  includeStar: (path: string) =>
    error(
      "config/include-star",
      `wildcard in a folder name: ${quote(path)}`,
      "use * only in the last part of the path",
    ),
  includeFolder: (folder: string) => error("config/include-folder", `folder ${folder} not found`),
  includeNested: () =>
    error(
      "config/include-nested",
      "include is not allowed in an included file",
      "add the file to include in the main file",
    ),
  definedTwice: (key: string, first: SourceSpan) =>
    error(
      "config/defined-twice",
      `${quote(key)} is already defined`,
      `in ${describePosition(first, "")}`,
    ),

  // ── ${…} ──
  unclosedReference: () =>
    error("config/unclosed-reference", "${ without a }", "write $${ for a literal ${"),
  nestedReference: () => error("config/nested-reference", "nested ${…} is not allowed"),
  bareVariable: (inside: string) =>
    error(
      "config/bare-variable",
      `\${${inside}} has no source`,
      `write \${env:${inside}}; for a literal \${, write $\${`,
    ),
  badVariable: (name: string) =>
    error(
      "config/bad-variable",
      `${quote(name)} is not a valid variable name`,
      "${env:NAME} or ${env:NAME:-default}",
    ),
  badFilePath: () => error("config/bad-reference", "${file:} has no path", "write ${file:./path}"),
  unknownReference: (raw: string) =>
    error(
      "config/bad-reference",
      `unknown reference ${raw}: the source must be env, file, or credential`,
      "write ${env:NAME}, ${env:NAME:-default}, ${file:path}, or " +
        "${credential:name}; for a literal ${, write $${",
    ),
  unsetVariable: (name: string) =>
    error(
      "config/unset-variable",
      `environment variable ${name} is not set`,
      `set it, or add a default: \${env:${name}:-}`,
    ),
  interpolatedUse: () =>
    error(
      "config/interpolated-use",
      "plugin names must be literal; variables are not allowed here",
    ),

  // ── shape ──
  unknownKey: (key: string, known: Iterable<string>) =>
    error(
      "config/unknown-key",
      `unknown key ${quote(key)}`,
      key === "<<"
        ? "merge keys are not supported; use include to merge maps"
        : key === "isolate"
          ? "only middleware can run outside the gateway"
          : (findKeyHint(key, known) ?? suggestOrList(key, known)),
    ),
  missingKey: (key: string, description: string | undefined) =>
    error(
      "config/missing-key",
      `missing key ${quote(key)}`,
      description !== undefined && description,
    ),
  wrongType: (expected: string, hint: string | false) =>
    error("config/wrong-type", `expected ${expected}`, hint),
  badValue: (message: string, hint: string | false = false) =>
    error("config/bad-value", message, hint),
  notOneOf: (value: string | undefined, allowed: readonly unknown[], hint: string | false) => {
    const words = allowed.map(String);
    const expected = `expected ${quoteAlternatives(words)}`;
    if (value === undefined) return error("config/not-one-of", expected, hint);
    const near = nearest(value, words);
    return error(
      "config/not-one-of",
      `invalid value ${quote(value)}: ${expected}`,
      near === undefined ? hint : `did you mean ${quote(near)}?`,
    );
  },
  notAllowedWithSocket: (key: string) =>
    error(
      "config/not-with-socket",
      `${quote(key)} cannot be used with "socket"`,
      "remove one of them",
    ),
  badCredential: (name: string) =>
    error(
      "config/bad-reference",
      `${quote(name)} is not a valid credential name`,
      "use letters, digits, dots, dashes, and underscores, as in ${credential:openai}",
    ),
  modeWithoutSocket: () =>
    error("config/mode-without-socket", '"mode" requires "socket"', "add socket, or remove mode"),
  sameListener: (at: string) =>
    error("config/same-listener", `duplicate listener address ${at}`, "remove one of them"),
  badProxy: () =>
    error("config/bad-value", "expected the URL of an HTTP proxy, such as http://proxy.corp:3128"),
  badCertificate: (message: string) => error("config/bad-certificate", message),
  adminExposed: (host: string) =>
    error(
      "config/admin-exposed",
      `${quote(host)} is reachable from other machines, so admin tokens would be sent unencrypted`,
      "use 127.0.0.1, add tls: { cert, key }, or set behind_proxy: true if a proxy in " +
        "front terminates TLS",
    ),
  noAdminListener: (routes: readonly string[]) =>
    warning(
      "config/no-admin-listener",
      `the plugin serves ${routes.slice(0, 3).join(", ")} on the admin listener, which is not configured`,
      "add admin: { tokens: … } to enable the admin listener",
    ),
  sameToken: (other: string) =>
    error(
      "config/same-token",
      `duplicate token: ${quote(other)} has the same one`,
      "use a different token for each name",
    ),
  badName: (name: string, expected: string) =>
    error("config/bad-name", `invalid name ${quote(name)}`, `expected ${expected}`),
  tooLong: () => error("config/too-long", "duration must be at most 24d"),
  notAnAddress: () => error("config/bad-value", "expected a URL such as https://api.example"),
  zeroTimeout: () =>
    error("config/zero-timeout", "timeout must be greater than 0", "omit it to use the default"),

  // ── references ──
  unknownProvider: (name: string, known: Iterable<string>) =>
    error("config/unknown-provider", `unknown provider ${quote(name)}`, suggestOrList(name, known)),
  unknownAccount: (name: string, known: Iterable<string>) =>
    error("config/unknown-account", `unknown account ${quote(name)}`, suggestOrList(name, known)),
  accountCycle: (path: readonly string[]) =>
    error("config/account-cycle", `accounts are nested in a cycle: ${path.join(" → ")}`),
  accountTooDeep: (path: readonly string[]) =>
    error(
      "config/account-too-deep",
      `accounts are nested more than 16 levels deep: ${path.join(" → ")}`,
    ),
  unknownModel: (name: string, known: Iterable<string>) =>
    error(
      "config/unknown-model",
      `unknown model ${quote(name)}: must be provider/model or a name under models`,
      suggestName(name, known),
    ),
  unknownKind: (name: string, known: readonly string[]) =>
    error(
      "config/unknown-kind",
      `unknown model type ${quote(name)}: no configured protocol supports it`,
      suggestName(name, known) || `known types: ${known.join(", ")}`,
    ),
  unknownClass: (name: string, known: readonly string[]) =>
    error(
      "config/unknown-class",
      `unknown call class ${quote(name)}`,
      suggestName(name, known) || `known classes: ${known.join(", ")}`,
    ),
  unknownFrontend: (name: string, known: Iterable<string>) =>
    error(
      "config/unknown-frontend",
      `frontend ${quote(name)} is not configured`,
      suggestOrList(name, known),
    ),
  aliasCycle: (path: readonly string[]) =>
    error("config/alias-cycle", `model names form a cycle: ${path.join(" → ")}`),
  starWithoutMatch: (name: string) =>
    error(
      "config/star-without-match",
      `the wildcard in ${quote(name)} has no match to insert, because the model name has no wildcard`,
    ),
  multipleStars: (name: string) =>
    error(
      "config/two-stars",
      `${quote(name)} has more than one wildcard, but its match is inserted here: use only one, such as ${quote(name.slice(0, name.indexOf("*") + 1))}`,
    ),
  confusableNames: (name: string, other: string) =>
    error(
      "config/similar-names",
      `${quote(name)} and ${quote(other)} differ only in case or in look-alike characters`,
    ),
  unmountedCandidate: (provider: string, why: string) =>
    note("config/unmounted-candidate", `skipped: provider ${provider} is not mounted: ${why}`),
  unmountedModel: (why: string) =>
    note("config/unmounted-model", `no mounted provider serves this model yet: ${why}`),
  unreachableModel: (provider: string) =>
    warning(
      "config/unreachable-model",
      `never used: names that start with ${provider}/ are sent to provider ${provider}`,
    ),
  unusedWeight: (pick: string) =>
    error(
      "config/unused-weight",
      `weight has no effect with pick: ${pick}`,
      "use pick: weighted or pick: sticky; weights of credentials apply to every pick",
    ),
  // ── credentials ──
  fieldWithCredentials: (key: string) =>
    error(
      "config/field-with-credentials",
      `${quote(key)} belongs to a single credential and cannot be used with a list of credentials`,
      "move it to credentials: [{ name, with }]",
    ),
  clientCredentialConflict: (key: string) =>
    error(
      "config/client-credential",
      `${quote(key)} cannot be used with credential: client, because the client sends the credential`,
      `remove ${quote(key)}, or credential: client`,
    ),
  clientAccountsMissing: () =>
    error(
      "config/client-credential",
      "credential: client requires client_accounts",
      'list the accounts that may use it, or "*" for every key',
    ),
  twoClientProviders: (first: string, other: string) =>
    error(
      "config/client-credential",
      `providers ${first} and ${other} both have credential: client, but a client's credential is sent to only one provider`,
      `remove the candidate of ${other}, or use a separate model name for it`,
    ),
  clientAccountsUnused: () =>
    error(
      "config/client-credential",
      "client_accounts has no effect without credential: client",
      "add credential: client, or remove client_accounts",
    ),
  reservedCredentialName: (name: string) =>
    error(
      "config/client-credential",
      `the credential name ${quote(name)} is reserved for credential: client`,
      "choose another name",
    ),
  sameCredential: (name: string) =>
    error("config/same-credential", `duplicate credential name ${quote(name)}`),
  literalSecret: () =>
    warning("secret/literal", "secret in plain text", "write ${env:NAME} or ${file:path}"),

  // ── plugins ──
  pluginNotFound: (use: string, kind: PluginKind, pkg: string, known: readonly string[]) => {
    const near = findPluginAlias(kind, use, known) ?? nearest(use, known);
    return error(
      "plugin/not-found",
      `unknown ${kind} ${quote(use)}`,
      `${near === undefined ? "" : `did you mean ${quote(near)}? If not, run: `}npm i ${pkg}`,
    );
  },
  pluginFileMissing: (file: string) =>
    error(
      "plugin/not-found",
      `plugin file ${file} not found`,
      "paths are relative to the file that contains them",
    ),
  badSpecifier: (use: string, why: string) =>
    error(
      "plugin/bad-specifier",
      `cannot load ${quote(use)}: ${why}`,
      "expected the name of a built-in plugin, a package name, or a path such as ./plugin.ts",
    ),
  fullPackageName: (use: string, short: string) =>
    error("plugin/bad-specifier", `${quote(use)} is a full package name`, `write use: ${short}`),
  noDefaultExport: (from: string, named: string | undefined) =>
    error(
      "plugin/no-default-export",
      `${from} does not export a plugin as its default export`,
      named === undefined
        ? "use export default defineProvider({ … }), or defineFrontend, defineMiddleware, " +
            "defineObserver, or defineStore"
        : `export ${quote(named)} as the default export`,
    ),
  wrongKind: (from: string, is: PluginKind, wanted: PluginKind) =>
    error(
      "plugin/wrong-kind",
      `${from} is ${KIND_WITH_ARTICLE[is]}, not ${KIND_WITH_ARTICLE[wanted]}`,
      `move it to ${SECTION_OF_KIND[is]}`,
    ),
  apiMismatch: (from: string, api: unknown, ours: number) =>
    error(
      "plugin/api-mismatch",
      `${from} has ${api === undefined ? "no API version" : `API version ${String(api)}`}, but this gateway requires API version ${ours}`,
      typeof api === "number" && api > ours ? "upgrade tollgate" : "upgrade the plugin",
    ),
  sinceMismatch: (from: string, since: string, ours: string) =>
    error(
      "plugin/since-mismatch",
      `${from} requires Tollgate ${since} or newer; this is ${ours}`,
      "upgrade tollgate",
    ),
  pluginNotAllowed: (name: string) =>
    error(
      "plugin/not-allowed",
      `package ${name} is not allowed`,
      `add it to plugins: { allow: […, ${name}] }`,
    ),
  pluginNotLocked: (name: string, severity: LocatedProblem["severity"] = "error") =>
    createProblemFactory(severity)(
      "plugin/not-locked",
      `package ${name} is not in plugins.lock.yaml, so its content cannot be verified`,
      `run tollgate plugin add ${name} to review its permissions and lock it`,
    ),
  pluginChanged: (name: string, changes: string) =>
    error(
      "plugin/changed",
      `${name} differs from the locked version: ${changes}`,
      `to accept the change, run tollgate plugin add ${name}`,
    ),
  lockUnreadable: (why: string) =>
    error("plugin/lock-unreadable", `cannot use plugins.lock.yaml: ${why}`),
  badDefinition: (from: string, why: string) => error("plugin/bad-definition", `${from}: ${why}`),
  unknownMember: (from: string, what: string, name: string, near: string | undefined) =>
    error(
      "plugin/unknown-member",
      `${from} has an unknown ${what} ${quote(name)}, which is never called`,
      near === undefined ? undefined : `did you mean ${quote(near)}?`,
    ),
  badSchema: (from: string, what: string, why: string) =>
    error("plugin/bad-schema", `${from}: invalid schema of its ${what}: ${why}`),
  importFailed: (from: string, why: string) =>
    error("plugin/import-failed", `cannot import ${from}: ${why}`),
  typesWrong: (from: string, first: string, others: number) =>
    error(
      "plugin/types",
      `type errors in ${from}: ${first}${others === 0 ? "" : ` (and ${others} more)`}`,
      "types are checked only with --dev",
    ),
  importSlow: (from: string, ms: number) =>
    error(
      "plugin/import-slow",
      `importing ${from} took longer than ${formatDuration(ms)}`,
      "importing a plugin must have no side effects and must not wait",
    ),
  setupFailed: (from: string, why: string) =>
    error("plugin/setup-failed", `setup of ${from} failed: ${why}`),
  setupSlow: (from: string, ms: number) =>
    error(
      "plugin/setup-slow",
      `setup of ${from} took longer than ${formatDuration(ms)}`,
      "move slow work to ready()",
    ),
  checkFailed: (from: string, why: string) =>
    error("plugin/check-failed", `check of ${from} failed: ${why}`),
  retentionTooShort: () =>
    error(
      "config/retention",
      "ledger.retention must be at least 1d, because rows can be settled and corrected " +
        "for a day",
    ),
  refreshTooShort: () => error("config/bad-value", "duration must be at least 1m"),
  cannotPrune: (store: string) =>
    error(
      "config/retention",
      `store "${store}" cannot replace rows by rollups, so it cannot apply ledger.retention`,
      "remove ledger.retention, and use the tools of its database",
    ),
  workersUnavailable: (workers: number | "auto") =>
    error(
      "config/workers",
      `workers is ${workers}, but an embedded gateway cannot start worker processes`,
      "write workers: 1, or start the gateway with tollgate serve",
    ),
  workerFailed: (why: string) => error("config/workers", `a worker rejected this config: ${why}`),
  pluginProblem: (severity: "error" | "warning", message: string, hint: string | undefined) =>
    createProblemFactory(severity)("plugin/check", message, hint),
} as const;

/** Counts problems: "2 errors, 1 warning". */
export const summarizeProblems = (problems: readonly Pick<LocatedProblem, "severity">[]): string =>
  (["error", "warning", "note"] as const)
    .flatMap((severity) => {
      const n = problems.filter((p) => p.severity === severity).length;
      return n > 0 ? [plural(n, severity)] : [];
    })
    .join(", ");

// Names of other products for plugins and config keys, with the names to use in gateway.yaml.

const PLUGIN_ALIASES: Readonly<Partial<Record<PluginKind, Readonly<Record<string, string>>>>> = {
  provider: { gemini: "google", claude: "anthropic", grok: "xai", "azure-openai": "azure" },
  frontend: {
    google: "gemini",
    openai: "chat-completions",
    chat: "chat-completions",
    anthropic: "messages",
  },
  middleware: { cors: "auth", budget: "limits", "rate-limit": "limits", "rate-limits": "limits" },
  observer: { prometheus: "metrics", otel: "otlp", opentelemetry: "otlp", log: "access-log" },
};

/** Returns Tollgate's name for another product's plugin, if it is known. */
function findPluginAlias(
  kind: PluginKind,
  use: string,
  known: readonly string[],
): string | undefined {
  const names = PLUGIN_ALIASES[kind] ?? {};
  const name = Object.hasOwn(names, use) ? names[use] : undefined;
  return name !== undefined && known.includes(name) ? name : undefined;
}

const LIMIT_HINT = "write limits: [usd=100/month]";
const RATE_HINT = "write limits: [requests=60/minute]";
const ACCOUNT_HINT = "under accounts.<name>, or tollgate keys create --limit";

/** Hints about replacements, by the key in lower case without separators between its words. */
const KEY_HINTS: Readonly<Record<string, string>> = {
  accesslog: "write observers: [console, access-log]",
  alerts: "write observers: [console, { use: alerts, with: { receivers: … } }]",
  budget: `${LIMIT_HINT} ${ACCOUNT_HINT} usd=100/month`,
  budgets: `${LIMIT_HINT} ${ACCOUNT_HINT} usd=100/month`,
  drain: "write shutdown: { announce: 5s, timeout: 300s }",
  maxbudget: `${LIMIT_HINT} ${ACCOUNT_HINT} usd=100/month`,
  metrics: "write observers: [console, metrics]",
  otlp: "write observers: [console, { use: otlp, with: { endpoint: … } }]",
  ratelimit: `${RATE_HINT} ${ACCOUNT_HINT} requests=60/minute`,
  ratelimits: `${RATE_HINT} ${ACCOUNT_HINT} requests=60/minute`,
  rpm: `${RATE_HINT} ${ACCOUNT_HINT} requests=60/minute`,
  zdrfields: "write zdr_allowed_fields",
  zdr: "write middleware: [auth, zdr, limits, usage], and privacy: required on an account or a key",
};

/** Returns the replacement for an unknown key of gateway.yaml, or undefined if there is no hint. */
function findKeyHint(key: string, known: Iterable<string>): string | undefined {
  const normalized = key.toLowerCase().replace(/[^a-z]/g, "");
  if (!Object.hasOwn(KEY_HINTS, normalized)) return undefined;
  const hint = KEY_HINTS[normalized]!;
  // The hint does not mention another place if the key `limits` is allowed here.
  return [...known].includes("limits") ? hint.split(` ${ACCOUNT_HINT}`)[0] : hint;
}
