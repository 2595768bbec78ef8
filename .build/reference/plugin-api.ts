// Generates docs/reference/plugin-api: every export of the public modules with its comment and its
// declaration.
import { BUILT_IN_OPERATIONS } from "../../src/model/operations/built-in-operations.ts";
import { globSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Declaration, declarationsOf, MODULES } from "../contract.ts";
import { code, divided, listed, page, type ReferencePage } from "./markdown.ts";

interface ApiPage {
  readonly slug: string;
  readonly title: string;
  /** Content of the page, after "It lists". */
  readonly about: string;
  /** Module of the exports. Default: `tollgate/plugin`. */
  readonly module?: string;
  /** Exports, by the file that declares them, or by "file:Name" for one of them. */
  readonly from: readonly string[];
}

const file = (path: string): string => `src/${path}.ts`;
const PLUGIN = "tollgate/plugin";

/** Pages in the order of the menu. A name takes precedence over its file. */
const PAGES: readonly ApiPage[] = [
  {
    slug: "plugin",
    title: "Plugin definitions",
    about: "the functions and types with which each plugin is defined",
    from: [
      "plugin/define",
      "plugin/plugin",
      "plugin/schema",
      "plugin/role",
      "plugin/problem",
      "lib/log/systemd-journal",
      "lib/text",
      "lib/glob",
    ].map(file),
  },
  {
    slug: "context",
    title: "Plugin context",
    about: "the services that the gateway offers to a plugin",
    from: ["plugin/context", "plugin/store/open-call", "lib/net/bounded-body"].map(file),
  },
  {
    slug: "provider",
    title: "Providers",
    about: "provider plugins, their endpoints, credentials, and authentication",
    from: ["plugin/provider", "plugin/account-tokens", "plugin/outgoing"].map(file),
  },
  {
    slug: "provider-batches",
    title: "Batches of providers",
    about: "the batch API of a provider, and its client",
    from: ["plugin/batch"].map(file),
  },
  {
    slug: "provider-videos",
    title: "Videos of providers",
    about: "the API for videos of a provider",
    from: [file("plugin/jobs/video"), `${file("model/request")}:VideoRequest`],
  },
  {
    slug: "provider-background",
    title: "Background mode of providers",
    about: "the background mode of a provider",
    from: ["plugin/jobs/background"].map(file),
  },
  {
    slug: "job-calls",
    title: "Calls of jobs",
    about: "the planning and billing of calls that end long after their request",
    from: ["plugin/jobs/job-calls"].map(file),
  },
  {
    slug: "job-lines",
    title: "Lines of jobs",
    about: "the planning and billing of the lines of jobs",
    from: ["plugin/store/job-lines"].map(file),
  },
  {
    slug: "calls",
    title: "Calls to providers",
    about: "one call to a provider, its client, and its outcome",
    from: ["plugin/call", "plugin/outcome"].map(file),
  },
  {
    slug: "middleware",
    title: "Middleware",
    about: "middleware plugins and their hooks",
    from: ["plugin/middleware", "plugin/identity", "plugin/client-secret", "lib/encryption"].map(
      file,
    ),
  },
  {
    slug: "sign-in",
    title: "Sign-in",
    about: "clients of identity providers, claims, and access tokens",
    from: [
      "plugin/sign-in/oidc-client",
      "plugin/sign-in/oauth-requests",
      "plugin/sign-in/claims",
      "plugin/sign-in/access-token",
    ].map(file),
  },
  {
    slug: "observer",
    title: "Observers",
    about: "observer plugins",
    from: ["plugin/observer"].map(file),
  },
  {
    slug: "queues",
    title: "Queues",
    about: "a bounded queue that delivers its items in batches, and its parts",
    from: ["lib/queue/bounded-queue", "lib/queue/batch-loop", "lib/queue/batch-queue"].map(file),
  },
  {
    slug: "records",
    title: "Request records",
    about: "the record of a finished request, as observers receive it",
    from: [
      ...[
        "RequestOutcome",
        "RequestRecord",
        "RequestRecordFault",
        "RequestRecordSkippedCandidate",
        "RequestRecordHook",
        "RequestRecordCall",
      ].map((name) => `${file("plugin/observer")}:${name}`),
      file("model/request-trace"),
    ],
  },
  {
    slug: "gateway-events",
    title: "Gateway events",
    about: "the events that the gateway reports about itself",
    from: ["plugin/gateway-event"].map(file),
  },
  {
    slug: "gateway-stats",
    title: "Live stats",
    about: "the counts and gauges of a running gateway",
    from: ["plugin/gateway-stats"].map(file),
  },
  {
    slug: "frontend",
    title: "Frontends",
    about: "frontend plugins and their routes",
    from: ["plugin/frontend"].map(file),
  },
  {
    slug: "sockets",
    title: "Sockets",
    about: "WebSockets of clients and providers, their sessions and meters",
    from: [
      file("plugin/socket"),
      ...[
        "SocketRoute",
        "SocketAddress",
        "RequestSocketRoute",
        "SocketSession",
        "RelaySocketRoute",
        "RelayInput",
      ].map((name) => `${file("plugin/frontend")}:${name}`),
      `${file("plugin/provider")}:EndpointSocket`,
    ],
  },
  {
    slug: "exchange",
    title: "Request exchange",
    about: "one request with its response, as hooks and frontends see it",
    from: ["plugin/exchange", "model/rpc-operation", "plugin/references"].map(file),
  },
  {
    slug: "protocol",
    title: "Protocols",
    about: "codecs with a server half for clients and a client half for providers",
    from: ["plugin/protocol"].map(file),
  },
  {
    slug: "protocol-halves",
    title: "Protocol halves",
    about: "the two halves of a protocol",
    from: ["ServerHalf", "ClientHalf"].map((name) => `${file("plugin/protocol")}:${name}`),
  },
  {
    slug: "store",
    title: "Stores",
    about: "store plugins and the commands that they apply",
    from: ["plugin/store/store-definition", "plugin/store/store"].map(file),
  },
  {
    slug: "store-instance",
    title: "Store instances",
    about: "what a running store offers beyond commands",
    from: ["plugin/store/store-instance", "plugin/store/ledger-transfer"].map(file),
  },
  {
    slug: "jobs",
    title: "Jobs",
    about: "records and kinds of jobs, and the reserves of their lines",
    from: ["plugin/store/job", "plugin/store/job-kind", "lib/webhook-signature"].map(file),
  },
  {
    slug: "ledger",
    title: "Ledger",
    about: "ledger rows and their maintenance",
    from: ["plugin/store/ledger-entry", "plugin/store/audit"].map(file),
  },
  {
    slug: "ledger-maintenance",
    title: "Ledger maintenance",
    about: "verification, export, retention, and erasure of ledger rows",
    from: ["plugin/store/ledger-maintenance"].map(file),
  },
  {
    slug: "keys-and-limits",
    title: "Keys, accounts, and limits",
    about: "API keys, accounts, and their limits",
    from: ["plugin/store/account", "plugin/store/limit", "plugin/store/member-scope"].map(file),
  },
  {
    slug: "values",
    title: "Values and errors",
    about: "values that all other types use, error kinds, and faults",
    from: ["model/values", "model/error"].map(file),
  },
  {
    slug: "usage",
    title: "Usage and billing",
    about: "usage, money, and prices",
    from: ["model/usage"].map(file),
  },
  {
    slug: "requests",
    title: "Requests",
    about: "requests in the common form that codecs translate",
    from: ["model/common-request", "model/request"].map(file),
  },
  {
    slug: "content",
    title: "Content",
    about: "the turns, content blocks, and tools of a chat request",
    from: [
      ...["Turn", "Tool", "Media", "Proof", "Block", "CompletionRequest"].map(
        (name) => `${file("model/request")}:${name}`,
      ),
      file("model/operations/audio-requests"),
    ],
  },
  {
    slug: "events",
    title: "Response events",
    about: "the events of a response in the common form",
    from: ["model/event", "model/response-collector"].map(file),
  },
  {
    slug: "operation-spec",
    title: "Operation specifications",
    about: "the type of an operation, with its cost and usage",
    from: [file("model/operations/operation-spec")],
  },
  {
    slug: "operations",
    title: "Operations",
    about: "the operations of models, such as chat and embedding",
    from: [...[...BUILT_IN_OPERATIONS.keys()].map((name) => `${name}-operation`), "index"].map(
      (name) => file(`model/operations/${name}`),
    ),
  },
  {
    slug: "model-metadata",
    title: "Model metadata",
    about: "the limits, capabilities, prices, and data policies of models",
    from: ["model/facts"].map(file),
  },
  {
    slug: "store-rules",
    title: "Ledger rules for stores",
    about: "ledger rules without I/O, for stores that keep rows themselves",
    module: "tollgate/store",
    from: ["ledger-rules", "ledger-row", "check-command"].map((name) => file(`store/${name}`)),
  },
  {
    slug: "store-meters",
    title: "Meters and periods for stores",
    about: "meters, running totals, and calendar periods",
    module: "tollgate/store",
    from: [
      "src/lib/",
      ...["meter", "metered-usage", "running-total", "calendar-window"].map((name) =>
        file(`store/${name}`),
      ),
    ],
  },
  {
    slug: "store-rows",
    title: "Journals and totals for stores",
    about: "journals, totals, rollups, and pages of ledger rows",
    module: "tollgate/store",
    from: ["src/store/", file("plugin/store/job-cursor")],
  },
  {
    slug: "testing",
    title: "Test kit",
    about: "the checks of plugins, hooks, and stores",
    module: "tollgate/testing",
    from: ["src/testing/"],
  },
  {
    slug: "testing-gateway",
    title: "Test gateways and recordings",
    about: "gateways that a test starts, recordings of providers, and live checks",
    module: "tollgate/testing",
    from: ["gateway", "start-gateway", "recording", "record-provider", "live-checks"].map((name) =>
      file(`testing/${name}`),
    ),
  },
  {
    slug: "testing-scripts",
    title: "Scripted models",
    about: "scripts of what a fake model answers",
    module: "tollgate/testing",
    from: ["model-script", "script-items"].map((name) => file(`testing/upstream/${name}`)),
  },
  {
    slug: "testing-upstream",
    title: "Test upstreams",
    about: "fake providers with scripted responses",
    module: "tollgate/testing",
    from: ["src/testing/upstream/", file("testing/error-response")],
  },
  {
    slug: "testing-batches",
    title: "Test batch APIs",
    about: "fake batch APIs of providers",
    module: "tollgate/testing",
    from: ["src/testing/batches/"],
  },
  {
    slug: "testing-videos",
    title: "Fake APIs for videos",
    about: "a fake API for videos and the formats that it imitates",
    module: "tollgate/testing",
    from: ["src/testing/videos/"],
  },
  {
    slug: "testing-background",
    title: "Fake background modes",
    about: "a fake background mode and the formats that it imitates",
    module: "tollgate/testing",
    from: ["src/testing/background/"],
  },
  {
    slug: "testing-codecs",
    title: "Codec tests",
    about: "helpers for the tests of protocols",
    module: "tollgate/testing",
    from: ["codec", "codec-contexts", "outgoing", "event-grammar", "protocol-laws", "context"].map(
      (name) => file(`testing/${name}`),
    ),
  },
  {
    slug: "testing-vitest",
    title: "Vitest adapter",
    about: "functions that register the checks of the kit as vitest tests",
    module: "tollgate/testing/vitest",
    from: ["src/testing/"],
  },
  {
    slug: "protocols-codec",
    title: "Codec functions",
    about: "functions that codecs of chat protocols share",
    module: "tollgate/protocols/codec",
    from: ["src/protocols/"],
  },
  {
    slug: "protocols-batches",
    title: "Batch APIs",
    about: "functions that send the lines of a batch and read its results",
    module: "tollgate/protocols/batches",
    from: ["src/protocols/"],
  },
  {
    slug: "protocols-compatible",
    title: "Compatible providers",
    about: "functions that build a provider from a row of data",
    module: "tollgate/protocols/compatible",
    from: ["src/protocols/"],
  },
];

/** Returns how exactly a page selects a declaration: 0 not at all, then folder, file, and name. */
function selects({ from, module = PLUGIN }: ApiPage, of: string, each: Declaration): number {
  if (module !== of) return 0;
  if (from.includes(`${each.file}:${each.name}`)) return Infinity;
  return Math.max(
    0,
    ...from
      .filter((path) => path === each.file || (path.endsWith("/") && each.file.startsWith(path)))
      .map((path) => path.length),
  );
}

/** Returns the declarations of each page. Throws if an export belongs to no page. */
function contents(): Map<ApiPage, Declaration[]> {
  const found = new Map<ApiPage, Declaration[]>(PAGES.map((each) => [each, []]));
  for (const module of MODULES)
    for (const each of declarationsOf(module)) {
      const [best] = PAGES.map((one) => [one, selects(one, module.name, each)] as const)
        .filter(([, exactness]) => exactness > 0)
        .toSorted(([, a], [, b]) => b - a);
      if (!best) throw new Error(`no page of the plugin API has ${each.name} of ${each.file}`);
      found.get(best[0])!.push(each);
    }
  return found;
}

const entry = ({ name, doc, text }: Declaration): string =>
  [`## ${name}`, doc, `\`\`\`typescript\n${text}\n\`\`\``].filter(Boolean).join("\n\n");

export function pluginApiPages(): ReferencePage[] {
  const all = [...contents()].flatMap(([{ slug, title, about, module = PLUGIN }, entries]) =>
    divided({ slug, title, entries }, entry).map((part) => ({ ...part, about, module })),
  );
  const pages = all.map(({ slug, title, about, module, entries }) =>
    page(`plugin-api/${slug}.md`, [
      `# ${title}`,
      `This page is for plugin authors. It lists ${about}, which ${code(module)} exports.`,
      ...entries.map(entry),
    ]),
  );
  const modules = [...Map.groupBy(all, ({ module }) => module)];
  const exportsOf = (own: typeof all) =>
    own
      .map(
        ({ slug, title, entries }) =>
          `- **[${title}](${slug}.md)**: ${entries
            .map(({ name }) => `[${code(name)}](${slug}.md#${name.toLowerCase()})`)
            .join(", ")}`,
      )
      .join("\n");
  const others = modules.filter(([module]) => module !== PLUGIN);
  const index = page("plugin-api/README.md", [
    "# Plugin API",
    "This page is for plugin authors. It lists all exports of `tollgate/plugin`, with a link to the page of each.",
    "The pages are generated from the types and their comments by `npm run docs:reference`. [The stability promise](../../plugins/promise.md) states what may change within API version 1. [api.txt](api.txt) contains all declarations without comments, for reviews of changes.",
    ...modules
      .filter(([module]) => module === PLUGIN)
      .flatMap(([module, own]) => [`## ${code(module)}`, exportsOf(own)]),
    "## Other modules",
    `[Exports of other modules](modules.md) lists the exports of ${listed(others.map(([module]) => code(module)))}.`,
    others
      .flatMap(([, own]) =>
        own.map(({ slug, title, about }) => `- **[${title}](${slug}.md)**: ${about}`),
      )
      .join("\n"),
    `Each protocol has a separate module, such as ${code("tollgate/protocols/messages")}, which exports the functions that create the protocol: ${listed(PROTOCOLS.map(code))}.`,
  ]);
  const rest = page("plugin-api/modules.md", [
    "# Exports of other modules",
    "This page is for plugin authors. It lists the exports of the public modules other than `tollgate/plugin`, with a link to the page of each.",
    ...others.flatMap(([module, own]) => [`## ${code(module)}`, exportsOf(own)]),
  ]);
  return [index, rest, ...pages];
}

/** Modules below `tollgate/protocols` without separate pages. */
const PROTOCOLS = globSync("src/protocols/*/index.ts", { cwd: join(import.meta.dirname, "../..") })
  .map((path) => basename(dirname(path)))
  .filter((id) => !MODULES.some(({ name }) => name === `tollgate/protocols/${id}`))
  .toSorted();
