// The gateway.yaml that an import makes: providers with their credentials, names, accounts; then its text.
import { createHash } from "node:crypto";
import { Document, isCollection, visit } from "yaml";

export interface DraftCredential {
  readonly key: string | undefined;
  weight: number | undefined;
  models: Set<string>;
}

export interface DraftProvider {
  readonly name: string;
  readonly use: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly credentials: DraftCredential[];
  readonly facts: Map<string, Record<string, unknown>>;
  timeouts: Record<string, string> | undefined;
}

export interface DraftRoute {
  candidates: { model: string; weight?: number | undefined }[];
  pick?: string | undefined;
  on?: readonly string[] | undefined;
  comment?: string | undefined;
}

export interface DraftAccount {
  readonly parent?: string | undefined;
  readonly name?: string | undefined;
  readonly limits?: readonly Record<string, unknown>[];
  readonly models?: readonly string[] | undefined;
}

/** A key in the clear: it goes to a file of its own, and gateway.yaml names that. */
export interface DraftSecret {
  readonly file: string;
  readonly text: string;
}

export class Draft {
  readonly providers = new Map<string, DraftProvider>();
  readonly routes = new Map<string, DraftRoute>();
  readonly accounts = new Map<string, DraftAccount>();
  readonly secrets: DraftSecret[] = [];
  readonly settings: Record<string, unknown> = {};
  readonly observers = new Set<string>(["console"]);

  /** The provider at one address, made when it is first needed. */
  provider(use: string, options: Readonly<Record<string, unknown>> = {}): DraftProvider {
    const same = [...this.providers.values()].find(
      (each) => each.use === use && JSON.stringify(each.options) === JSON.stringify(options),
    );
    if (same) return same;
    const name = this.#free(use === "openai-compatible" ? hostName(options["base_url"]) : use);
    const made = { name, use, options, credentials: [], facts: new Map(), timeouts: undefined };
    this.providers.set(name, made);
    return made;
  }

  #free(wanted: string): string {
    for (let i = 1; ; i++) {
      const name = i === 1 ? wanted : `${wanted}-${i}`;
      if (!this.providers.has(name)) return name;
    }
  }

  /** `key`: as gateway.yaml says it, or undefined for none. */
  credential(provider: DraftProvider, key: string | undefined): DraftCredential {
    const same = provider.credentials.find((each) => each.key === key);
    if (same) return same;
    const made = { key, weight: undefined, models: new Set<string>() };
    provider.credentials.push(made);
    return made;
  }

  /** A key that stood in the file: what gateway.yaml says in its place. */
  secret(text: string, name: string): string {
    const known = this.secrets.find((each) => each.text === text);
    const mark = createHash("sha256").update(text).digest("hex").slice(0, 6);
    const file = known?.file ?? `secrets/${slug(name)}-${mark}`;
    if (!known) this.secrets.push({ file, text });
    return `\${file:./${file}}`;
  }

  text(from: string): string {
    const document = new Document(this.#tree());
    document.commentBefore = ` yaml-language-server: $schema=./schemas/gateway.schema.json\n Made of ${from}; what has no equal stands in the report of the import.`;
    for (const [name, { comment }] of this.routes) {
      const node = document.getIn(["models", name], true);
      if (comment !== undefined && node) (node as { comment?: string }).comment = ` ${comment}`;
    }
    visit(document, {
      Collection(_, node) {
        const small = node.items.length <= 4 && !node.items.some((item) => isDeep(item));
        if (small && node.items.length > 0) node.flow = true;
      },
    });
    return document.toString({ lineWidth: 120 });
  }

  #tree(): Record<string, unknown> {
    return {
      listen: { host: "127.0.0.1", port: 8787 },
      admin: { host: "127.0.0.1", port: 9787 },
      ...this.settings,
      frontends: ["chat-completions", "messages", "responses", "images", "models", "usage"],
      middleware: ["auth", "zdr", "limits", "usage"],
      observers: [...this.observers],
      ...(this.accounts.size > 0 && { accounts: Object.fromEntries(this.accounts) }),
      providers: Object.fromEntries(
        [...this.providers.values()].map((p) => [p.name, providerOf(p)]),
      ),
      ...(this.routes.size > 0 && {
        models: Object.fromEntries([...this.routes].map(([name, of]) => [name, routeOf(of)])),
      }),
    };
  }
}

const isDeep = (item: unknown): boolean =>
  isCollection(item) || isCollection((item as { value?: unknown } | null)?.value);

function providerOf({ use, name, options, credentials, facts, timeouts }: DraftProvider) {
  const keyed = credentials.filter(({ key }) => key !== undefined);
  const alone = keyed.length === 1 ? keyed[0] : undefined;
  const settings = { ...options, ...(alone && { api_key: alone.key }) };
  return {
    use,
    ...(alone && variableOf(alone.key!) && { when: `\${env:${variableOf(alone.key!)}:-}` }),
    ...(Object.keys(settings).length > 0 && { with: settings }),
    ...(keyed.length > 1 && {
      credentials: keyed.map(({ key, weight, models }, i) => ({
        name: slug(variableOf(key!) ?? `${name}-${i + 1}`),
        with: { api_key: key },
        ...(weight !== undefined && { weight }),
        ...(models.size > 0 && { models: [...models] }),
      })),
    }),
    ...(timeouts && { timeouts }),
    ...(facts.size > 0 && { models: Object.fromEntries(facts) }),
  };
}

const routeOf = ({ candidates, pick, on }: DraftRoute): unknown => {
  const said = candidates.map(({ model, weight }) =>
    weight === undefined ? model : { model, weight },
  );
  if (pick === undefined && on === undefined)
    return said.length === 1 && typeof said[0] === "string" ? said[0] : { candidates: said };
  return { candidates: said, ...(pick && { pick }), ...(on && { on }) };
};

/** "OPENAI_API_KEY" of "${env:OPENAI_API_KEY}" */
export const variableOf = (key: string): string | undefined => /^\$\{env:(\w+)\}$/.exec(key)?.[1];

export const slug = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[^a-z0-9]+|-+$/g, "")
    .slice(0, 64) || "x";

/** "llm.corp" of its address. */
function hostName(base: unknown): string {
  const host = URL.parse(String(base))?.hostname ?? "custom";
  return slug(
    /^[\d.]+$|:/.test(host) || host === "localhost" ? "local" : host.replace(/^api\./, ""),
  );
}
