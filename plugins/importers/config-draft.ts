// Builds the gateway.yaml of an import: first providers with credentials, model names, and
// accounts, and then the text.
import { createHash } from "node:crypto";
import { Document, isCollection, visit } from "yaml";
import { findProvider } from "./known-providers.ts";
import type { ImportedKey } from "./key-export.ts";
import type { SourceValue } from "./source-value.ts";

/** Names of Tollgate's built-in plugins that a draft may use. */
export interface BuiltInPlugins {
  readonly providers: ReadonlySet<string>;
  /** The default frontends. */
  readonly frontends: readonly string[];
}

export interface DraftCredential {
  /**
   * Fields of the credential as in gateway.yaml, such as `api_key`. Undefined if the provider needs
   * no credential.
   */
  readonly fields: Readonly<Record<string, string>> | undefined;
  weight: number | undefined;
  models: Set<string>;
}

export interface DraftProvider {
  readonly name: string;
  readonly use: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly credentials: DraftCredential[];
  readonly facts: Map<string, Record<string, unknown>>;
  timeouts: Record<string, unknown> | undefined;
}

export interface DraftRoute {
  candidates: { model: string; weight?: number | undefined }[];
  pick?: string | undefined;
  fallbackOn?: readonly string[] | undefined;
  comment?: string | undefined;
}

export interface DraftAccount {
  readonly parent?: string | undefined;
  readonly name?: string | undefined;
  readonly limits?: readonly string[];
  readonly models?: readonly string[] | undefined;
}

/** A literal key. It is written to a separate file, to which gateway.yaml refers. */
export interface DraftSecret {
  readonly file: string;
  readonly text: string;
}

export class ConfigDraft {
  readonly providers = new Map<string, DraftProvider>();
  readonly routes = new Map<string, DraftRoute>();
  readonly accounts = new Map<string, DraftAccount>();
  readonly secrets: DraftSecret[] = [];
  readonly settings: Record<string, unknown> = {};
  readonly observers = new Set<string>(["console"]);
  readonly #builtIn: BuiltInPlugins;

  constructor(builtIn: BuiltInPlugins) {
    this.#builtIn = builtIn;
  }

  /** Returns the provider for a name in the other gateway, or undefined if there is none. */
  findProvider(word: string): string | undefined {
    return findProvider(word, this.#builtIn.providers);
  }

  /**
   * Returns the provider with these options, and adds it at its first use.
   * @param wanted Name to mount it under. Default: the host name of a server, or `use`.
   */
  provider(
    use: string,
    options: Readonly<Record<string, unknown>> = {},
    wanted?: string,
  ): DraftProvider {
    const same = [...this.providers.values()].find(
      (each) => each.use === use && JSON.stringify(each.options) === JSON.stringify(options),
    );
    if (same) return same;
    const usual = use === "openai-compatible" ? hostName(options["base_url"]) : use;
    const name = this.#freeName(wanted ?? usual);
    const made = { name, use, options, credentials: [], facts: new Map(), timeouts: undefined };
    this.providers.set(name, made);
    return made;
  }

  #freeName(wanted: string): string {
    for (let i = 1; ; i++) {
      const name = i === 1 ? wanted : `${wanted}-${i}`;
      if (!this.providers.has(name)) return name;
    }
  }

  /**
   * Returns the credential with these fields, and adds it at its first use.
   * @param keyOrFields An API key, or several fields. Undefined if no credential is needed.
   */
  credential(
    provider: DraftProvider,
    keyOrFields: string | Readonly<Record<string, string>> | undefined,
  ): DraftCredential {
    const fields = typeof keyOrFields === "string" ? { api_key: keyOrFields } : keyOrFields;
    const text = JSON.stringify(fields);
    const same = provider.credentials.find((each) => JSON.stringify(each.fields) === text);
    if (same) return same;
    const made = { fields, weight: undefined, models: new Set<string>() };
    provider.credentials.push(made);
    return made;
  }

  /**
   * Stores a literal key of the imported config, and returns the reference to it for gateway.yaml.
   */
  secret(text: string, name: string): string {
    const known = this.secrets.find((each) => each.text === text);
    const mark = createHash("sha256").update(text).digest("hex").slice(0, 6);
    const file = known?.file ?? `secrets/${slug(name)}-${mark}`;
    if (!known) this.secrets.push({ file, text });
    return `\${file:./${file}}`;
  }

  toYaml(from: string): string {
    const document = new Document(this.#buildTree());
    document.commentBefore = ` yaml-language-server: $schema=./schemas/gateway.schema.json\n Imported from ${from}; settings without an equivalent are listed in the report of the import.`;
    for (const [name, { comment }] of this.routes) {
      const node = document.getIn(["models", name], true);
      if (comment !== undefined && node) (node as { comment?: string }).comment = ` ${comment}`;
    }
    visit(document, {
      Collection(_, node) {
        const small =
          node.items.length <= 4 && !node.items.some((item) => isNestedCollection(item));
        if (small && node.items.length > 0) node.flow = true;
      },
    });
    return document.toString({ lineWidth: 120 });
  }

  #buildTree(): Record<string, unknown> {
    return {
      listen: { host: "127.0.0.1", port: 8787 },
      admin: { host: "127.0.0.1", port: 9787 },
      ...this.settings,
      // The other gateways serve all of these protocols by default.
      frontends: this.#builtIn.frontends,
      middleware: ["auth", "zdr", "limits", "usage"],
      observers: [...this.observers],
      ...(this.accounts.size > 0 && { accounts: Object.fromEntries(this.accounts) }),
      providers: Object.fromEntries(
        [...this.providers.values()].map((p) => [p.name, toProviderConfig(p)]),
      ),
      ...(this.routes.size > 0 && {
        models: Object.fromEntries([...this.routes].map(([name, of]) => [name, toRouteConfig(of)])),
      }),
    };
  }
}

const isNestedCollection = (item: unknown): boolean =>
  isCollection(item) || isCollection((item as { value?: unknown } | null)?.value);

function toProviderConfig({ use, name, options, credentials, facts, timeouts }: DraftProvider) {
  const keyed = credentials.filter(({ fields }) => fields !== undefined);
  const alone = keyed.length === 1 ? keyed[0] : undefined;
  const settings = { ...options, ...alone?.fields };
  const variable = (alone && firstVariable(alone.fields)) ?? firstVariable(options);
  return {
    use,
    ...(variable && { when: `\${env:${variable}:-}` }),
    ...(Object.keys(settings).length > 0 && { with: settings }),
    ...(keyed.length > 1 && {
      credentials: keyed.map((each, i) => ({
        name: slug(firstVariable(each.fields) ?? `${name}-${i + 1}`),
        with: each.fields,
        ...(each.weight !== undefined && { weight: each.weight }),
        ...(each.models.size > 0 && { models: [...each.models] }),
      })),
    }),
    ...(timeouts && { timeouts }),
    ...(facts.size > 0 && { models: Object.fromEntries(facts) }),
  };
}

/** Returns the first environment variable that a provider requires. */
const firstVariable = (fields: Readonly<Record<string, unknown>> | undefined): string | undefined =>
  Object.values(fields ?? {})
    .map((value) => /^\$\{env:(\w+)\}/.exec(String(value))?.[1])
    .find((name) => name !== undefined);

const toRouteConfig = ({ candidates, pick, fallbackOn }: DraftRoute): unknown => {
  const entries = candidates.map(({ model, weight }) =>
    weight === undefined || pick !== "weighted" ? model : { model, weight },
  );
  if (pick === undefined && fallbackOn === undefined)
    return entries.length === 1 && typeof entries[0] === "string"
      ? entries[0]
      : { candidates: entries };
  return {
    candidates: entries,
    ...(pick && { pick }),
    ...(fallbackOn && { fallback_on: fallbackOn }),
  };
};

export const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+|-+$/g, "")
    .slice(0, 64) || "x";

/** Returns the host of a base URL: "llm.corp". */
function hostName(base: unknown): string {
  const host = URL.parse(String(base))?.hostname ?? "custom";
  return slug(
    /^[\d.]+$|:/.test(host) || host === "localhost" ? "local" : host.replace(/^api\./, ""),
  );
}

/** Converts the config of another gateway. */
export interface Importer {
  /** Name of the other gateway, which is an argument of `tollgate import`. */
  readonly name: string;
  /**
   * Reads the config and adds providers, routes, accounts, and settings to the draft of
   * gateway.yaml. `source` records which values were read. The others are reported to the operator
   * as unsupported.
   * @param options `modelName` is the model that clients request if the config names none.
   * @returns The keys that the config contains.
   */
  importConfig(
    source: SourceValue,
    draft: ConfigDraft,
    options: { readonly modelName: string },
  ): readonly ImportedKey[];
}
