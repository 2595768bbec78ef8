// Definitions with the names of real plugins and a few options for errors, with the real loader.
import { createLoader } from "../../../src/loader/plugin-loader.ts";
import { DEFAULT_FRONTENDS } from "../../../src/config/schema/config-schema.ts";
import type { BuiltinPlugins } from "../../../src/loader/resolve-plugin.ts";
import auth from "../../../plugins/middleware/auth.ts";
import {
  apiKeySchema,
  defineFrontend,
  defineMiddleware,
  defineObserver,
  defineProvider,
  defineStore,
} from "../../../src/plugin/index.ts";

const never = () => {
  throw new Error("the config never runs a setup");
};
const module = (definition: unknown) => () => Promise.resolve({ default: definition });

const frontend = (name: string) =>
  module(defineFrontend({ api: 1, name, summary: name, setup: never }));
const middleware = (name: string) =>
  module(defineMiddleware({ api: 1, name, summary: name, sends: "nowhere", setup: never }));

const demo = defineProvider({ api: 1, name: "demo", summary: "Offline", setup: never });

const keyed = (name: string) =>
  defineProvider({
    api: 1,
    name,
    summary: name,
    credential: apiKeySchema,
    options: {
      type: "object",
      additionalProperties: false,
      properties: {
        base_url: { type: "string", format: "uri", description: "Where the API is" },
        region: { enum: ["eu", "us"], default: "us", description: "Where it runs" },
        retries: { type: "integer", minimum: 0, maximum: 5, description: "How often" },
        beta: { type: "boolean", description: "Whether" },
        label: { type: "string", description: "Any text" },
        route: {
          description: "A name, or a name and a share",
          anyOf: [
            { type: "string" },
            {
              type: "object",
              additionalProperties: false,
              required: ["name"],
              properties: { name: { type: "string" }, share: { type: "number", maximum: 1 } },
            },
          ],
        },
      },
    },
    check: function* ({ base_url, region }) {
      if (region === "eu" && base_url?.includes(".us"))
        yield { path: "/base_url", message: "is not in the eu", hint: "or set region: us" };
    },
    setup: never,
  });

const guard = defineMiddleware({
  api: 1,
  name: "guard",
  summary: "Words",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["words"],
    properties: {
      words: { type: "array", minItems: 1, items: { type: "string" }, description: "Never said" },
      webhook: {
        type: "object",
        additionalProperties: false,
        description: "Who is told",
        properties: {
          url: { type: "string", format: "uri", description: "Where" },
          headers: {
            type: "object",
            additionalProperties: { type: "string", "x-secret": true },
            description: "Sent along",
          },
        },
      },
    },
  },
  setup: never,
});

const watch = defineObserver({
  api: 1,
  name: "watch",
  summary: "Sends what it sees",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { token: { type: "string", "x-secret": true, description: "What it presents" } },
  },
  setup: never,
});

const sqlite = defineStore({
  api: 1,
  name: "sqlite",
  summary: "One file",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      durability: {
        enum: ["power", "process", "relaxed"],
        default: "power",
        description: "What a commit survives",
      },
    },
  },
  setup: never,
});

export const definitions = {
  demo,
  openai: keyed("openai"),
  anthropic: keyed("anthropic"),
  guard,
  sqlite,
};

export const builtin: BuiltinPlugins = {
  provider: {
    demo: module(demo),
    openai: module(definitions.openai),
    anthropic: module(definitions.anthropic),
  },
  frontend: Object.fromEntries(DEFAULT_FRONTENDS.map((n) => [n, frontend(n)])),
  middleware: {
    // Its keys name accounts.
    auth: module(auth),
    ...Object.fromEntries(["zdr", "limits", "usage"].map((n) => [n, middleware(n)])),
    guard: module(guard),
  },
  observer: {
    watch: module(watch),
    console: module(
      defineObserver({ api: 1, name: "console", summary: "Pages", sends: "nowhere", setup: never }),
    ),
  },
  store: { sqlite: module(sqlite) },
};

export const load = createLoader({ builtin, hostModules: {} });
