// Generates docs/reference/configuration: every key of gateway.yaml and every option of the plugins
// that ship with Tollgate, from the schemas that validate them.
import { EDITOR_CONFIG_SCHEMA } from "../../src/config/schema/config-schema.ts";
import type { Schema } from "../../src/config/schema-dialect.ts";
import type { Definition, PluginKind } from "../../src/plugin/define.ts";
import { RESTART_PATHS } from "../../src/runtime/reload/reload-rules.ts";
import { builtinPlugins } from "../../src/cli/support/load-config.ts";
import { CONFIG_EXAMPLES, inlineExample } from "./config-examples.ts";
import { code, page, type ReferencePage, sentence, table } from "./markdown.ts";
import { entryOf, type Setting, settingsOf } from "./settings.ts";

type BuiltinKind = Exclude<PluginKind, "provider">;

interface ConfigPage {
  readonly slug: string;
  readonly title: string;
  readonly about: string;
  /** Keys of gateway.yaml that the page describes, with the keys below them. */
  readonly keys?: readonly string[];
  /** Plugins whose options the page describes. */
  readonly plugins?: readonly (readonly [kind: BuiltinKind, name: string])[];
}

const METADATA = "providers.<name>.models";
const PRICE = `${METADATA}.<name>.price`;

/** Frontends whose options are not on the page of all frontends. */
const OWN_PAGES = new Set(["messages", "responses", "mcp", "claude-gateway", "jobs", "videos"]);

const PAGES: readonly ConfigPage[] = [
  {
    slug: "listen",
    title: "Listeners",
    about: "the addresses on which clients reach the gateway, with TLS",
    keys: ["listen", "public_url"],
  },
  {
    slug: "admin",
    title: "Admin listener",
    about: "the listener for the admin API, its tokens, and sign-in by OpenID Connect",
    keys: ["admin"],
  },
  {
    slug: "process",
    title: "Process and files",
    about: "the state directory, workers, shutdown, logging, packages, and included files",
    keys: [
      "state_dir",
      "workers",
      "shutdown",
      "include",
      "allow_empty",
      "plugins",
      "log",
      "request_history",
    ],
  },
  {
    slug: "requests",
    title: "Requests and responses",
    about: "timeouts, retries, size limits, overload protection, and responses",
    keys: [
      "timeouts",
      "retries",
      "max_body",
      "bounds",
      "overload",
      "strict",
      "response_headers",
      "files",
    ],
  },
  {
    slug: "providers",
    title: "Providers",
    about: "the entries under `providers`, the outbound proxy, model lists, and the price feed",
    keys: ["providers", "proxy", "catalog", "prices"],
  },
  {
    slug: "model-metadata",
    title: "Model metadata",
    about: "your own metadata of a provider's models",
    keys: [METADATA],
  },
  { slug: "prices", title: "Prices", about: "your own prices of a model", keys: [PRICE] },
  {
    slug: "models",
    title: "Model names and routes",
    about: "model names that you define, their candidates, and fallback",
    keys: ["models"],
  },
  {
    slug: "accounts",
    title: "Accounts and key defaults",
    about:
      "accounts that several keys share, limits of sessions and end users, the default settings of new keys, and the currencies of invoices",
    keys: ["accounts", "scopes", "key_defaults", "views"],
  },
  {
    slug: "store",
    title: "Store and ledger",
    about: "the store of keys and the ledger, with the options of the built-in stores",
    keys: ["store", "ledger"],
    plugins: [
      ["store", "sqlite"],
      ["store", "memory"],
    ],
  },
  {
    slug: "store-postgres",
    title: "PostgreSQL store",
    about: "the options of the package `tollgate-store-postgres`",
    plugins: [["store", "postgres"]],
  },
  {
    slug: "frontends",
    title: "Frontends",
    about: "the entries under `frontends`, with the options of the built-in frontends",
    keys: ["frontends"],
    plugins: Object.keys(builtinPlugins.frontend)
      .filter((name) => !OWN_PAGES.has(name))
      .map((name) => ["frontend", name] as const),
  },
  {
    slug: "messages-and-responses",
    title: "Messages and Responses frontends",
    about: "the options of the frontends `messages` and `responses`",
    plugins: [
      ["frontend", "messages"],
      ["frontend", "responses"],
    ],
  },
  {
    slug: "jobs",
    title: "Jobs frontends",
    about: "the options of the frontends `jobs` and `videos`",
    plugins: [
      ["frontend", "jobs"],
      ["frontend", "videos"],
    ],
  },
  {
    slug: "mcp",
    title: "MCP servers",
    about: "the options of the frontend `mcp`",
    plugins: [["frontend", "mcp"]],
  },
  {
    slug: "sign-in",
    title: "Sign-in frontend",
    about: "the options of the frontend `claude-gateway`",
    plugins: [["frontend", "claude-gateway"]],
  },
  {
    slug: "middleware",
    title: "Middleware",
    about: "the entries under `middleware`, with the options for limits, usage, and privacy",
    keys: ["middleware"],
    plugins: [
      ["middleware", "limits"],
      ["middleware", "usage"],
      ["middleware", "zdr"],
      ["middleware", "agent-hints"],
      ["middleware", "prompt-caches"],
      ["middleware", "remote-mcp"],
    ],
  },
  {
    slug: "authentication",
    title: "Authentication middleware",
    about: "the options of `auth`, `client-certificates`, and `jwt`",
    plugins: [
      ["middleware", "auth"],
      ["middleware", "client-certificates"],
      ["middleware", "jwt"],
    ],
  },
  {
    slug: "observers",
    title: "Observers",
    about:
      "the entries under `observers`, with the options of the access log, metrics, and console",
    keys: ["observers"],
    plugins: [
      ["observer", "access-log"],
      ["observer", "metrics"],
      ["observer", "console"],
    ],
  },
  {
    slug: "alerts",
    title: "Alerts",
    about: "the options of the observer `alerts`",
    plugins: [["observer", "alerts"]],
  },
  {
    slug: "reconcile",
    title: "Reconciliation",
    about: "the options of the observer `reconcile`",
    plugins: [["observer", "reconcile"]],
  },
  {
    slug: "otlp",
    title: "OpenTelemetry export",
    about: "the options of the observer `otlp`",
    plugins: [["observer", "otlp"]],
  },
];

/** Rates have the same form under each key, so they are listed once. */
const REPEATED = /price\.(?:over|tiers|variants)\b./;
const settings: readonly Setting[] = settingsOf(EDITOR_CONFIG_SCHEMA, "", REPEATED);
const isBelow = (path: string, key: string): boolean =>
  path === key || path.startsWith(`${key}.`) || path.startsWith(`${key}[`);

/** Returns the page of a key: the page whose name is the longest prefix of the key's path. */
function pageOf(path: string): ConfigPage {
  const [found] = PAGES.flatMap((each) =>
    (each.keys ?? []).filter((key) => isBelow(path, key)).map((key) => [each, key] as const),
  ).toSorted(([, a], [, b]) => b.length - a.length);
  if (!found) throw new Error(`no page of the configuration reference has ${path}`);
  return found[0];
}

const restartNote = (path: string): string | undefined =>
  RESTART_PATHS.some((key) => isBelow(path, key)) ? "A change requires a restart." : undefined;

const keyEntries = (own: readonly Setting[]): string[] =>
  own.map((setting) =>
    entryOf(setting, {
      restart: restartNote(setting.path),
      example: inlineExample(setting),
      heading: own.some((other) => other !== setting && isBelow(setting.path, other.path))
        ? "###"
        : "##",
    }),
  );

/** Plugins that are separate packages. */
const PACKAGES: Readonly<Record<string, () => Promise<unknown>>> = {
  postgres: () => import("../../plugins/stores/postgres/index.ts"),
  aws: () => import("../../plugins/providers/aws/index.ts"),
  vertex: () => import("../../plugins/providers/vertex/index.ts"),
  "azure-foundry": () => import("../../plugins/providers/azure-foundry/index.ts"),
};

/** Builds the page of the providers that are separate packages. */
async function providerPackagesPage(): Promise<ReferencePage> {
  const names = ["aws", "vertex", "azure-foundry"];
  const sections = names.map(async (name) => {
    const definition = await definitionOf("provider", name);
    const { options = {}, credential = {} } = definition as {
      readonly options?: Schema;
      readonly credential?: Schema;
    };
    return [
      `## Provider ${code(name)}`,
      `${sentence(definition.summary)} Package: ${code(`tollgate-provider-${name}`)}. [Guide](../../../plugins/providers/${name}/README.md).`,
      ...[...settingsOf(options), ...settingsOf(credential)].map((setting) =>
        entryOf(setting, {
          name: `${name}: ${setting.path}`,
          example: inlineExample(setting, name),
        }),
      ),
    ];
  });
  return page("configuration/provider-packages.md", [
    "# Providers in packages",
    "This page is for operators. It lists the options of the providers that are installed as separate packages.",
    ...(await Promise.all(sections)).flat(),
  ]);
}

async function definitionOf(kind: PluginKind, name: string): Promise<Definition> {
  const load = PACKAGES[name] ?? builtinPlugins[kind][name]!;
  return ((await load()) as { default: Definition }).default;
}

async function pluginSection(kind: PluginKind, name: string): Promise<string[]> {
  const definition = await definitionOf(kind, name);
  const own = settingsOf((definition.options ?? {}) as Schema);
  return [
    `## ${kind[0]!.toUpperCase()}${kind.slice(1)} ${code(name)}`,
    sentence(definition.summary),
    own.length === 0 ? "No options." : "",
    CONFIG_EXAMPLES[`${kind} ${name}`] ?? "",
    ...own.map((setting) =>
      entryOf(setting, {
        name: `${name}: ${setting.path}`,
        restart: restartNote(kind),
        example: inlineExample(setting, name),
      }),
    ),
  ];
}

/** Returns the entries of rates as a table, because they differ only in their unit. */
function rateTable(own: readonly Setting[]): { rates: readonly Setting[]; text: string } {
  const rates = own.filter(({ description }) => /^Dollars (?:each|per million)$/.test(description));
  const rows = rates.map(({ path, description }) => [
    code(path.slice(PRICE.length + 1)),
    description === "Dollars each" ? "US dollars per unit" : "US dollars per million",
  ]);
  return { rates, text: table(["Rate", "Amount"], rows) };
}

async function configPage(each: ConfigPage): Promise<ReferencePage> {
  const { slug, title, about, keys = [], plugins = [] } = each;
  const own = settings.filter(({ path }) => pageOf(path) === each);
  const { rates, text } = rateTable(own);
  const sections = await Promise.all(plugins.map(([kind, name]) => pluginSection(kind, name)));
  return page(`configuration/${slug}.md`, [
    `# ${title}`,
    `This page is for operators. It lists ${about}.`,
    CONFIG_EXAMPLES[slug] ?? "",
    ...keys.flatMap((key) =>
      keyEntries(own.filter((one) => isBelow(one.path, key) && !rates.includes(one))),
    ),
    ...(rates.length > 0
      ? [
          "## Rates",
          `Each rate is a key of ${code("price")}, of an entry under ${code("over")}, and of a service tier under ${code("tiers")}. An amount is a number or a text such as ${code('"0.25"')}. Since 0.1.0.`,
          text,
        ]
      : []),
    ...sections.flat(),
  ]);
}

/** Builds the pages of the providers that ship with Tollgate. */
async function providerPages(): Promise<ReferencePage[]> {
  const all = await Promise.all(
    Object.keys(builtinPlugins.provider)
      .toSorted()
      .map(async (name) => ({ name, definition: await definitionOf("provider", name) })),
  );
  const optionsOf = ({ definition }: (typeof all)[number]) =>
    settingsOf((definition.options ?? {}) as Schema);
  const COMMON = ["base_url", "api_key"];
  const rows = all.map((one) => {
    const { definition, name } = one;
    const base = optionsOf(one).find(({ path }) => path === "base_url");
    const [key] = settingsOf((definition as { credential?: Schema }).credential ?? {});
    return [
      code(name),
      definition.summary,
      base === undefined ? "" : (base.fallback ?? "Required"),
      key === undefined ? "" : key.isRequired ? "Required" : "Optional",
      definition.stability ?? "experimental",
    ];
  });
  const openai = all.find(({ name }) => name === "openai")!;
  const common = [
    ...optionsOf(openai).filter(({ path }) => path === "base_url"),
    ...settingsOf((openai.definition as { credential?: Schema }).credential ?? {}),
  ].map((setting) =>
    entryOf(
      { ...setting, isRequired: false, fallback: "see the table" },
      { example: inlineExample(setting), heading: "##" },
    ),
  );
  const special = all.filter((one) => optionsOf(one).some(({ path }) => !COMMON.includes(path)));
  return [
    page("configuration/provider-plugins.md", [
      "# Built-in providers",
      "This page is for operators. It lists the providers that ship with Tollgate, with the options that they share.",
      CONFIG_EXAMPLES["provider-plugins"]!,
      `[Options of single providers](provider-options.md) lists further options. The clouds [have packages of their own](provider-packages.md): AWS, Vertex AI, and Azure AI Foundry.`,
      ...common,
      "## Providers",
      table(["`use`", "Service", "Default of `base_url`", "`api_key`", "Stability"], rows),
    ]),
    page("configuration/provider-options.md", [
      "# Options of single providers",
      "This page is for operators. It lists the options that only some providers have. The options that all share are in [Built-in providers](provider-plugins.md).",
      ...special.flatMap((one) => [
        `## Provider ${code(one.name)}`,
        sentence(one.definition.summary),
        ...optionsOf(one)
          .filter(({ path }) => !COMMON.includes(path))
          .map((setting) =>
            entryOf(setting, {
              name: `${one.name}: ${setting.path}`,
              example: inlineExample(setting, one.name),
            }),
          ),
      ]),
    ]),
  ];
}

const TYPES: readonly (readonly string[])[] = [
  ["Duration", "A number with `ms`, `s`, `m`, `h`, or `d`", "`30s`"],
  ["Size", "A number of bytes, or a number with `B`, `KiB`, `MiB`, or `GiB`", "`64MiB`"],
  ["Date", "A day in UTC", "`2027-03-01`"],
  ["Limit", "Unit, amount, and period, or `concurrent` with an amount", "`usd=300/month`"],
  ["Pattern", "A text in which `*` matches any text", "`openai/gpt-*`"],
  ["Reference", "The value of a variable, file, or credential", "`${env:NAME}`"],
];

function indexPage(): ReferencePage {
  const top = settings.filter(({ path }) => !/[.[]/.test(path));
  return page("configuration/README.md", [
    "# Configuration reference",
    "This page is for operators. It lists all keys of `gateway.yaml`, with a link to the description of each.",
    CONFIG_EXAMPLES["README"]!,
    "The pages are generated from the schemas that validate the file, by `npm run docs:reference`. `tollgate check` validates a file, and `tollgate print` shows it with all defaults. Editors read the same descriptions from `schemas/gateway.schema.json`.",
    "## Top-level keys",
    table(
      ["Key", "Description", "Page"],
      top.map(({ path, description }) => {
        const { slug, title } = pageOf(path);
        return [
          `[${code(path)}](${slug}.md#${path})`,
          description.split(". ")[0]!,
          `[${title}](${slug}.md)`,
        ];
      }),
    ),
    "## Models of providers",
    "- **[Model metadata](model-metadata.md)**: limits, capabilities, and data policies of a provider's models\n- **[Prices](prices.md)**: prices of a provider's models",
    "## Options of plugins",
    "The options of a plugin are set in `with`, next to `use`. In these pages, a heading such as `limits: hold` names the plugin and the option.",
    PAGES.filter(({ plugins }) => plugins)
      .map(
        ({ slug, title, plugins = [] }) =>
          `- **[${title}](${slug}.md)**: ${plugins.map(([, name]) => code(name)).join(", ")}`,
      )
      .concat(
        "- **[Built-in providers](provider-plugins.md)**: all providers, and the options that they share",
        "- **[Options of single providers](provider-options.md)**: options that only some providers have",
        "- **[Providers in packages](provider-packages.md)**: AWS, Vertex AI, and Azure AI Foundry",
      )
      .join("\n"),
    "## Paths",
    "A dot separates a key from the map that contains it. `<name>` is a name that you choose, such as the key of a provider. `[]` is an item of a list.",
    "## Value types",
    table(["Type", "Form", "Example"], TYPES),
    "## When a change takes effect",
    'A change takes effect when the file is saved, without closing connections. Keys with the note "A change requires a restart" are the exception: the gateway rejects a reload that changes them. `tollgate hot-restart` applies such a change to keys that allow it, without downtime.',
  ]);
}

export async function configPages(): Promise<ReferencePage[]> {
  return [
    indexPage(),
    ...(await Promise.all(PAGES.map(configPage))),
    ...(await providerPages()),
    await providerPackagesPage(),
  ];
}
