// All messages about problems with a config or plugin, one factory each. The IDs are stable,
// because people search for them in CI. The message states what is wrong, the hint states the fix.
import { joinWords, nearest, plural } from "../lib/text.ts";
import { formatDuration } from "../lib/time/units.ts";
import type { PluginKind } from "../plugin/define.ts";
import { findKeyHint, findPluginAlias } from "./foreign-names.ts";
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
  return words.length > 0 && words.length <= 8 && `there is ${joinWords(words.map(quote), "and")}`;
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
  fileMissing: (file: string) => error("config/file-missing", `${file} does not exist`),
  configMissing: (file: string) =>
    error("config/file-missing", `${file} does not exist`, "`tollgate init` writes one"),
  notAFile: (file: string) => error("config/not-a-file", `${file} is not a file`),
  tooLarge: (file: string, bytes: number) =>
    error("config/file-too-large", `${file} has ${bytes} bytes; 1 MiB is the most that is read`),
  unreadable: (file: string, why: string) =>
    error("config/file-unreadable", `${file} cannot be read: ${why}`),
  notUtf8: (file: string) => error("config/not-utf8", `${file} is not UTF-8`),
  /** A file that a program truncated and has not written again yet. */
  emptyFile: (file: string) =>
    error(
      "config/empty-file",
      `${file} says nothing: it is empty`,
      "`tollgate init` prints one to start from; {} is a config of defaults alone",
    ),
  lastProviderRemoved: (were: number) =>
    error(
      "config/no-provider-left",
      `it would leave no provider where there ${were === 1 ? "is one" : `are ${were}`}`,
      "say allow_empty: true if that is meant",
    ),

  // ── isolated plugins ──
  builtinNotIsolatable: (use: string) =>
    error(
      "config/builtin-outside",
      `${quote(use)} is a part of the gateway, and cannot stand in a process of its own`,
      "leave isolate out",
    ),
  kindNotIsolatable: (use: string, kind: PluginKind) =>
    error(
      "config/kind-outside",
      `${quote(use)} cannot be ${KIND_WITH_ARTICLE[kind]}: only a middleware can stand outside the gateway`,
    ),
  networkNotDenied: (use: string) =>
    warning(
      "config/network-open",
      `this Node cannot keep ${quote(use)} from the network`,
      "run Node 26, which can",
    ),
  socketPath: (use: string) =>
    error("config/socket-path", `${quote(use)} names no socket`, "write unix:./guard.sock"),

  // ── YAML ──
  syntax: (code: string, message: string, row: string) => {
    // Names the likely mistake, of which YAML reports only the consequence.
    if (code === "MULTIPLE_DOCS")
      return error("config/syntax", "a second document begins here", "one file, one document");
    const bare = code === "UNEXPECTED_TOKEN" && /(^|[^"'\w])\$\{/.test(row);
    return bare
      ? error(
          "config/syntax",
          "a bare { opens a map, also in ${…}",
          'write "${env:NAME}", in quotes',
        )
      : error(
          "config/syntax",
          message,
          code === "BAD_INDENT"
            ? "is this line, or one above it, indented by more or fewer spaces than its neighbours?"
            : code === "BLOCK_AS_IMPLICIT_KEY" &&
                "is a line indented too far, or does a value with a colon need quotes?",
        );
  },
  notAMapping: () => error("config/not-a-map", "expected keys and values", "see `tollgate init`"),
  duplicateKey: (key: string, first: SourceSpan, from: string) =>
    error(
      "config/duplicate-key",
      `the key ${quote(key)} stands here twice`,
      `first on ${describePosition(first, from)}`,
    ),
  forbiddenKey: (key: string) => error("config/forbidden-key", `${quote(key)} cannot be a key`),
  interpolatedKey: (key: string) =>
    error(
      "config/interpolated-key",
      `the key ${quote(key)} is taken as it is written`,
      "only values may hold ${…}",
    ),
  unknownAlias: (name: string) =>
    error("config/unknown-alias", `*${name} refers to nothing above it`, `&${name} would name it`),
  recursiveAlias: (name: string) => error("config/alias-inside", `*${name} contains itself`),
  tag: (tag: string) =>
    error("config/tag", `the tag ${tag.replace("tag:yaml.org,2002:", "!!")} means nothing here`),
  tooManyValues: () =>
    error("config/too-many-values", "too many values; aliases count each time they are used"),
  tooDeep: () => error("config/too-deep", "nested too deeply"),
  unsafeNumber: (text: string) =>
    error(
      "config/number",
      `${text} is not a number that can be kept exactly`,
      "put it in quotes if it is a name",
    ),

  // ── include ──
  includePath: () =>
    error("config/include-path", "include is read before any ${…}", "write the path itself"),
  includeStar: (path: string) =>
    error(
      "config/include-star",
      `in ${quote(path)} a star stands in a folder's name`,
      "a star may stand in the last part only",
    ),
  includeFolder: (folder: string) => error("config/include-folder", `there is no folder ${folder}`),
  includeNested: () =>
    error("config/include-nested", "an included file cannot include", "name it in the main file"),
  definedTwice: (key: string, first: SourceSpan) =>
    error(
      "config/defined-twice",
      `${quote(key)} is already defined`,
      `in ${describePosition(first, "")}`,
    ),

  // ── ${…} ──
  unclosedReference: () =>
    error("config/unclosed-reference", "${ without a }", "a literal ${ is written $${"),
  nestedReference: () => error("config/nested-reference", "one ${…} inside another"),
  bareVariable: (inside: string) =>
    error(
      "config/bare-variable",
      `\${${inside}} does not say where from`,
      `write \${env:${inside}}; a literal \${ is written $\${`,
    ),
  badVariable: (name: string) =>
    error(
      "config/bad-variable",
      `${quote(name)} cannot be a variable's name`,
      "${env:NAME} or ${env:NAME:-default}",
    ),
  badFilePath: () =>
    error("config/bad-reference", "${file:} names no file", "write ${file:./path}"),
  unknownReference: (raw: string) =>
    error(
      "config/bad-reference",
      `${raw} is neither env nor file nor credential`,
      "${env:NAME}, ${env:NAME:-default}, ${file:path} or ${credential:name}; a literal ${ is written $${",
    ),
  unsetVariable: (name: string) =>
    error(
      "config/unset-variable",
      `the variable ${name} is not set`,
      `set it, or give a default: \${env:${name}:-}`,
    ),
  interpolatedUse: () =>
    error(
      "config/interpolated-use",
      "what to load is said by the file itself, never by a variable",
    ),

  // ── shape ──
  unknownKey: (key: string, known: Iterable<string>) =>
    error(
      "config/unknown-key",
      `unknown key ${quote(key)}`,
      key === "<<"
        ? "merge keys are not read; include joins maps"
        : key === "isolate"
          ? "only a middleware can stand outside the gateway"
          : (findKeyHint(key, known) ?? suggestOrList(key, known)),
    ),
  missingKey: (key: string, description: string | undefined) =>
    error(
      "config/missing-key",
      `${quote(key)} is missing`,
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
      `${quote(value)} is not one of them: ${expected}`,
      near === undefined ? hint : `did you mean ${quote(near)}?`,
    );
  },
  notAllowedWithSocket: (key: string) =>
    error("config/beside-socket", `${quote(key)} stands beside "socket"`, "say one of them"),
  badCredential: (name: string) =>
    error(
      "config/bad-reference",
      `${quote(name)} cannot be a credential's name`,
      "letters, digits, dots, dashes and underscores, as in ${credential:openai}",
    ),
  modeWithoutSocket: () =>
    error("config/mode-without-socket", '"mode" is of a socket', "add socket, or leave it out"),
  sameListener: (at: string) =>
    error("config/same-listener", `${at} is listened on above already`, "leave one of them out"),
  badProxy: () =>
    error(
      "config/bad-value",
      "expected the address of an HTTP proxy, such as http://proxy.corp:3128",
    ),
  badCertificate: (message: string) => error("config/bad-certificate", message),
  adminExposed: (host: string) =>
    error(
      "config/admin-exposed",
      `${quote(host)} is reached from other machines, and admin tokens would travel in the clear`,
      "use 127.0.0.1, give it tls: { cert, key }, or say behind_proxy: true where something in front of it speaks TLS",
    ),
  noAdminListener: (routes: readonly string[]) =>
    warning(
      "config/no-admin-listener",
      `it serves ${routes.slice(0, 3).join(", ")} on the admin listener, and there is none`,
      "admin: { tokens: … } opens one",
    ),
  sameToken: (other: string) =>
    error("config/same-token", `it is the token of ${quote(other)}`, "give each its own"),
  badName: (name: string, expected: string) =>
    error("config/bad-name", `${quote(name)} cannot be a name here`, `expected ${expected}`),
  tooLong: () => error("config/too-long", "longer than a timer can run: 24d is the most"),
  notAnAddress: () => error("config/bad-value", "expected an address such as https://api.example"),
  zeroTimeout: () =>
    error("config/zero-timeout", "nothing happens within no time", "leave it out for the default"),

  // ── references ──
  unknownProvider: (name: string, known: Iterable<string>) =>
    error(
      "config/unknown-provider",
      `there is no provider ${quote(name)}`,
      suggestOrList(name, known),
    ),
  unknownAccount: (name: string, known: Iterable<string>) =>
    error(
      "config/unknown-account",
      `there is no account ${quote(name)}`,
      suggestOrList(name, known),
    ),
  accountCycle: (path: readonly string[]) =>
    error("config/account-cycle", `these accounts stand in one another: ${path.join(" → ")}`),
  accountTooDeep: (path: readonly string[]) =>
    error("config/account-too-deep", `${path.join(" → ")} are more than sixteen levels`),
  unknownModel: (name: string, known: Iterable<string>) =>
    error(
      "config/unknown-model",
      `${quote(name)} is neither provider/model nor a name under models`,
      suggestName(name, known),
    ),
  unknownKind: (name: string, known: readonly string[]) =>
    error(
      "config/unknown-kind",
      `unknown kind of model ${quote(name)}: no mounted protocol has it`,
      suggestName(name, known) || `the kinds are ${known.join(", ")}`,
    ),
  unknownClass: (name: string, known: readonly string[]) =>
    error(
      "config/unknown-class",
      `unknown class of calls ${quote(name)}`,
      suggestName(name, known) || `the classes are ${known.join(", ")}`,
    ),
  unknownFrontend: (name: string, known: Iterable<string>) =>
    error(
      "config/unknown-frontend",
      `the frontend ${quote(name)} is not mounted`,
      suggestOrList(name, known),
    ),
  aliasCycle: (path: readonly string[]) =>
    error("config/alias-cycle", `these names lead in a circle: ${path.join(" → ")}`),
  starWithoutMatch: (name: string) =>
    error(
      "config/star-carries-nothing",
      `the star in ${quote(name)} stands for what a star in the model's name matched, and there is none`,
    ),
  multipleStars: (name: string) =>
    error(
      "config/two-stars",
      `${quote(name)} has more than one star, and here the text of the star is carried over: write one, such as ${quote(name.slice(0, name.indexOf("*") + 1))}`,
    ),
  confusableNames: (name: string, other: string) =>
    error(
      "config/look-alike",
      `${quote(name)} and ${quote(other)} differ only in case or in look-alike letters`,
    ),
  unmountedCandidate: (provider: string, why: string) =>
    note("config/unmounted-candidate", `skipped: ${provider} is not mounted, ${why}`),
  unmountedModel: (why: string) =>
    note("config/unmounted-model", `no mounted provider answers for it yet: ${why}`),
  unreachableModel: (provider: string) =>
    warning(
      "config/unreachable-model",
      `never asked: what begins with ${provider}/ goes to the provider ${provider}`,
    ),
  unusedWeight: (pick: string) =>
    error(
      "config/idle-weight",
      `nothing goes by this weight: pick is ${pick}`,
      "write pick: weighted, or sticky; a credential's own weight counts under each pick",
    ),
  zdrAfterUsage: () =>
    warning(
      "config/zdr-after-usage",
      "zdr comes after usage",
      "put zdr first, so that a refusal is decided before anything is written about the request",
    ),

  // ── credentials ──
  fieldWithCredentials: (key: string) =>
    error(
      "config/field-beside-credentials",
      `${quote(key)} belongs to one credential, and there is a list of them`,
      "move it into credentials: [{ name, with }]",
    ),
  sameCredential: (name: string) =>
    error("config/same-credential", `there are two credentials named ${quote(name)}`),
  literalSecret: () =>
    warning(
      "secret/literal",
      "a secret stands in the file itself",
      "write ${env:NAME} or ${file:path}",
    ),

  // ── plugins ──
  pluginNotFound: (use: string, kind: PluginKind, pkg: string, known: readonly string[]) => {
    const near = findPluginAlias(kind, use, known) ?? nearest(use, known);
    return error(
      "plugin/not-found",
      `there is no ${kind} ${quote(use)}`,
      `${near === undefined ? "" : `did you mean ${quote(near)}? If not: `}npm i ${pkg}`,
    );
  },
  pluginFileMissing: (file: string) =>
    error(
      "plugin/not-found",
      `there is no plugin at ${file}`,
      "a path is relative to the file it stands in",
    ),
  badSpecifier: (use: string, why: string) =>
    error(
      "plugin/bad-specifier",
      `${quote(use)} cannot be loaded: ${why}`,
      "a built-in's name, a package, or a path such as ./plugin.ts",
    ),
  fullPackageName: (use: string, short: string) =>
    error("plugin/bad-specifier", `${quote(use)} is a package's whole name`, `write use: ${short}`),
  noDefaultExport: (from: string, named: string | undefined) =>
    error(
      "plugin/no-default-export",
      `${from} exports no plugin as its default`,
      named === undefined
        ? "export default defineProvider({ … }), or defineFrontend, defineMiddleware, defineObserver, defineStore"
        : `it exports one as ${quote(named)}: make it the default`,
    ),
  wrongKind: (from: string, is: PluginKind, wanted: PluginKind) =>
    error(
      "plugin/wrong-kind",
      `${from} is ${KIND_WITH_ARTICLE[is]}, not ${KIND_WITH_ARTICLE[wanted]}`,
      `it belongs under ${SECTION_OF_KIND[is]}`,
    ),
  apiMismatch: (from: string, api: unknown, ours: number) =>
    error(
      "plugin/api-mismatch",
      `${from} speaks api ${api === undefined ? "of no number" : String(api)}, this gateway speaks api ${ours}`,
      typeof api === "number" && api > ours ? "upgrade tollgate" : "upgrade the plugin",
    ),
  sinceMismatch: (from: string, since: string, ours: string) =>
    error(
      "plugin/since-mismatch",
      `${from} needs Tollgate ${since} or newer, this is ${ours}`,
      "upgrade tollgate",
    ),
  pluginNotAllowed: (name: string) =>
    error(
      "plugin/not-allowed",
      `${name} is none of the packages that may be mounted`,
      `plugins: { allow: […, ${name}] } allows it`,
    ),
  pluginNotLocked: (name: string, severity: LocatedProblem["severity"] = "error") =>
    createProblemFactory(severity)(
      "plugin/not-locked",
      `${name} is in no plugins.lock.yaml: nothing says that it is what was accepted`,
      `tollgate plugin add ${name} shows what it needs, and locks it`,
    ),
  pluginChanged: (name: string, changes: string) =>
    error(
      "plugin/changed",
      `${name} is not what was accepted: ${changes}`,
      `if that is meant: tollgate plugin add ${name}`,
    ),
  lockUnreadable: (why: string) =>
    error("plugin/lock-unreadable", `plugins.lock.yaml cannot be used: ${why}`),
  badDefinition: (from: string, why: string) => error("plugin/bad-definition", `${from}: ${why}`),
  unknownMember: (from: string, what: string, name: string, near: string | undefined) =>
    error(
      "plugin/unknown-member",
      `${from} has ${quote(name)}, and there is no such ${what}: nothing would call it`,
      near === undefined ? undefined : `did you mean ${quote(near)}?`,
    ),
  badSchema: (from: string, what: string, why: string) =>
    error("plugin/bad-schema", `${from}: the schema of its ${what} cannot be used: ${why}`),
  importFailed: (from: string, why: string) =>
    error("plugin/import-failed", `${from} could not be imported: ${why}`),
  typesWrong: (from: string, first: string, others: number) =>
    error(
      "plugin/types",
      `the types of ${from} are wrong: ${first}${others === 0 ? "" : ` (and ${others} more)`}`,
      "without --dev types are not looked at",
    ),
  importSlow: (from: string, ms: number) =>
    error(
      "plugin/import-slow",
      `${from} was not imported within ${formatDuration(ms)}`,
      "importing a plugin must have no effect and wait for nothing",
    ),
  setupFailed: (from: string, why: string) =>
    error("plugin/setup-failed", `the setup of ${from} failed: ${why}`),
  setupSlow: (from: string, ms: number) =>
    error(
      "plugin/setup-slow",
      `the setup of ${from} did not end within ${formatDuration(ms)}`,
      "what takes long belongs in ready()",
    ),
  checkFailed: (from: string, why: string) =>
    error("plugin/check-failed", `the check of ${from} failed: ${why}`),
  retentionTooShort: () =>
    error(
      "config/keep",
      "rows are kept for a day at least: they are settled and corrected until then",
    ),
  cannotPrune: (store: string) =>
    error(
      "config/keep",
      `the store "${store}" cannot put sums in the place of rows, so it cannot apply ledger.retention`,
      "take it out, and use what its database has for that",
    ),
  workersUnavailable: (said: number | "auto") =>
    error(
      "config/workers",
      `workers says ${said}, and a gateway inside another program has no program for them to run`,
      "write workers: 1, or start it with tollgate serve",
    ),
  workerFailed: (why: string) =>
    error("config/workers", `a worker could not take this config: ${why}`),
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
