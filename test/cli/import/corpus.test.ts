// A config of another gateway imports without an error, starts, and responds on every model name,
// or its omission is reported. All configs of the corpus run in one gateway, each with its own
// prefix.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { startTestGateway, type TestGateway } from "tollgate/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import {
  ConfigDraft,
  importers,
  SourceValue,
  type ImportFinding,
} from "../../../plugins/importers/index.ts";
import { DEFAULT_FRONTENDS } from "../../../src/config/schema/config-schema.ts";
import { builtinPlugins, createPluginLoader } from "../../../src/cli/support/load-config.ts";
import { loadConfig } from "../../../src/config/load-config.ts";
import { CASES } from "./cases.ts";
import { CORPUS } from "./corpus/corpus.ts";

type Source = keyof typeof CORPUS;

interface Tree {
  readonly providers?: Readonly<Record<string, Provider>>;
  readonly models?: Readonly<Record<string, string | Route>>;
}
interface Provider {
  readonly use: string;
  readonly with?: { readonly base_url?: string };
  readonly models?: Readonly<Record<string, { operation?: string; [fact: string]: unknown }>>;
}
interface Route {
  readonly candidates: readonly (string | { readonly model: string })[];
}

interface Made {
  readonly title: string;
  readonly source: Source;
  readonly text: string;
  readonly findings: readonly ImportFinding[];
  /** Model names of the other gateway's clients, and the position of each in its config. */
  readonly names: readonly (readonly [name: string, place: string])[];
  readonly prefix: string;
  readonly tree: Tree;
}

const all: readonly (readonly [Source, string, string])[] = [
  ...CASES.map(({ source, name, text }) => [source, name, text] as const),
  ...(Object.keys(CORPUS) as Source[]).flatMap((source) =>
    Object.entries(CORPUS[source]).map(([name, text]) => [source, name, text] as const),
  ),
];

const made: readonly Made[] = all.map(([source, title, from], i) => {
  const said = SourceValue.parse(from, "config");
  const draft = new ConfigDraft({
    providers: new Set(Object.keys(builtinPlugins.provider)),
    frontends: DEFAULT_FRONTENDS,
  });
  importers
    .find(({ name }) => name === source)!
    .importConfig(said, draft, { modelName: "assistant" });
  for (const rest of said.unreadValues()) rest.report("unsupported", "this setting is not read");
  const text = draft.toYaml("test");
  return {
    title: `${source}: ${title}`,
    source,
    text,
    findings: said.findings,
    names: namesOf(source, parse(from)),
    prefix: `c${i}`,
    tree: parse(text) as Tree,
  };
});

/** A star replaces a model that no config names. */
function concrete(name: string): string {
  return name.replaceAll("*", "some-model");
}

function namesOf(source: Source, config: any): (readonly [string, string])[] {
  if (source === "portkey") return [["assistant", ""]];
  if (source === "litellm")
    return [
      ...(config.model_list ?? []).map(
        (each: any, i: number) => [concrete(each.model_name ?? "?"), `model_list[${i}]`] as const,
      ),
      ...Object.keys(config.router_settings?.model_group_alias ?? {}).map(
        (name) => [name, `router_settings.model_group_alias.${name}`] as const,
      ),
    ];
  return Object.entries<any>(config.providers ?? {}).flatMap(([provider, { keys }]) =>
    (keys.length === 0 ? [{}] : keys).flatMap((key: any) => {
      const aliases = Object.keys(
        key.azure_key_config?.deployments ?? key.bedrock_key_config?.deployments ?? {},
      );
      const models = (key.models ?? []).filter((name: string) => name !== "*");
      const names = [...new Set([...aliases, ...(models.length > 0 ? models : ["some-model"])])];
      return names.map((name) => [`${provider}/${name}`, `providers.${provider}`] as const);
    }),
  );
}

/** Whether the import reports that this part of the config was omitted. */
const isLeftOut = ({ source, findings }: Made, name: string, place: string): boolean =>
  findings.some(
    ({ kind, at, message }) =>
      (kind === "unsupported" || kind === "manual") &&
      (source === "portkey" ? at.startsWith("targets") || at === "" : at.startsWith(place)) &&
      !/the config contained a key|npm install|AWS_\*/.test(message + name),
  );

const slashed = (prefix: string, model: string, { models = {}, providers = {} }: Tree): string => {
  const provider = model.slice(0, Math.max(0, model.indexOf("/")));
  return !Object.hasOwn(models, model) && Object.hasOwn(providers, provider)
    ? `${prefix}-${model}`
    : `${prefix}/${model}`;
};

/** The model as an operator's own row, on the mock. */
function behind(url: string, { use, with: options, models }: Provider) {
  // A URL keeps its path, which must lead to an API with a version.
  const path = options?.base_url === undefined ? "/v1" : URL.parse(options.base_url)?.pathname;
  const kinds = Object.entries(models ?? {});
  const of = (kind: string) =>
    kinds.filter(([, facts]) => facts.operation === kind).map(([id]) => id);
  return {
    use: "openai-compatible",
    with: {
      base_url: `${url}/${use}${path ?? "/v1"}`,
      api_key: "${env:KEY}",
      list_models: false,
      embeddings: ["*embedding*", ...of("embedding")].slice(0, 16),
      ...(of("image").length > 0 && { images: of("image") }),
    },
    ...(models && {
      models: Object.fromEntries(kinds.map(([id, { priced_as: _, ...facts }]) => [id, facts])),
    }),
  };
}

/** URL of an API: with a version, except for providers that add it themselves. */
const API =
  /\/(v\d+|anthropic|google|deepseek|azure-foundry|deepinfra\/v1\/openai)\/(chat\/completions|embeddings|images\/generations)$/;

let up: Server;
const asked: string[] = [];
let running: TestGateway;

beforeAll(async () => {
  up = createServer((req, res) => {
    asked.push(req.url!);
    req.resume().on("end", () => {
      res.setHeader("content-type", "application/json");
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const message = { role: "assistant", content: "Hi." };
      res.end(
        JSON.stringify(
          req.url!.endsWith("/embeddings")
            ? { object: "list", model: "m", data: [{ index: 0, embedding: [1] }], usage }
            : req.url!.endsWith("/images/generations")
              ? { created: 1, data: [{ b64_json: "AA==" }] }
              : {
                  id: "1",
                  object: "chat.completion",
                  created: 1,
                  model: "m",
                  choices: [{ index: 0, message, finish_reason: "stop" }],
                  usage,
                },
        ),
      );
    });
  });
  await new Promise<void>((listening) => up.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(up.address() as AddressInfo).port}`;
  const providers: Record<string, unknown> = {};
  const models: Record<string, unknown> = {};
  for (const { prefix, tree } of made) {
    for (const [name, provider] of Object.entries(tree.providers ?? {}))
      providers[`${prefix}-${name}`] = behind(url, provider);
    const at = (model: string) => slashed(prefix, model, tree);
    for (const [name, route] of Object.entries(tree.models ?? {}))
      models[`${prefix}/${name}`] =
        typeof route === "string"
          ? at(route)
          : {
              ...route,
              candidates: route.candidates.map((each) =>
                typeof each === "string" ? at(each) : { ...each, model: at(each.model) },
              ),
            };
  }
  running = await startTestGateway({
    env: { KEY: "k" },
    yaml: stringify({
      frontends: ["chat-completions", "embeddings", "images"],
      providers,
      models,
    }),
  });
});
afterAll(async () => {
  await running?.[Symbol.asyncDispose]();
  up?.close();
});

/** Every variable is set: those of URLs to a URL. */
const ENV = new Proxy({} as Record<string, string>, {
  get: (_, name) =>
    typeof name !== "string"
      ? undefined
      : /BASE|ENDPOINT/.test(name)
        ? "https://set.example"
        : "a-value",
  has: () => true,
  getOwnPropertyDescriptor: () => ({ value: "x", configurable: true, enumerable: true }),
});

it.each(Object.keys(CORPUS) as Source[])("has thirty configs of %s", (source) => {
  expect(made.filter((each) => each.source === source).length).toBeGreaterThanOrEqual(30);
});

describe.each(made.map((one) => [one.title, one] as const))("%s", (_title, one) => {
  it("becomes a valid gateway.yaml", async () => {
    const { problems } = await loadConfig(join(import.meta.dirname, "gateway.yaml"), {
      env: ENV,
      loadPlugin: createPluginLoader(),
      textOverride: one.text.replace(/\$\{file:[^}]*\}/g, "a-key-that-stood-there"),
    });
    expect(problems.filter(({ severity }) => severity === "error")).toEqual([]);
  });

  it("every model name responds, or its omission is reported", async () => {
    for (const [name, place] of one.names) {
      const model = slashed(one.prefix, name, one.tree);
      const ask = (path: string, body: object) =>
        fetch(`${running.url}/v1/${path}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ model, ...body }),
        });
      asked.length = 0;
      let res = await ask("chat/completions", { messages: [{ role: "user", content: "Hello." }] });
      let text = await res.text();
      if (res.status === 400 && /embedding/.test(text))
        res = await ask("embeddings", { input: "a" });
      else if (res.status === 400 && /image/.test(text))
        res = await ask("images/generations", { prompt: "a" });
      else if (/speech|transcript|rerank|moderation|completion model/.test(text)) continue;
      if (res.status !== 200 && isLeftOut(one, name, place)) continue;
      if (!res.bodyUsed) text = await res.text();
      expect([name, res.status, text.slice(0, 300)]).toEqual([name, 200, expect.anything()]);
      expect(asked.at(-1)).toMatch(API);
    }
  });
});
