// Any form of the base URL works, and a client with two different keys is rejected everywhere.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import chat from "../../plugins/frontends/chat-completions.ts";
import images from "../../plugins/frontends/images.ts";
import messages from "../../plugins/frontends/messages.ts";
import models from "../../plugins/frontends/models.ts";
import responses from "../../plugins/frontends/responses.ts";
import usage from "../../plugins/frontends/usage.ts";
import { startTestGateway, type TestGateway } from "tollgate/testing";
import { mintKey } from "../../src/lib/api-key.ts";
import { KEY, ONE_KEY } from "../kit/one-key.ts";
import { png } from "../protocols/images/pictures.ts";

let house: TestGateway;
beforeAll(async () => {
  house = await startTestGateway({
    yaml: `${ONE_KEY}
frontends: [chat-completions, messages, responses, images, models, usage]
providers: { demo: { use: demo } }
`,
  });
});
afterAll(() => house[Symbol.asyncDispose]());

const words = [{ role: "user", content: "Hi" }];
const MODEL = "demo/echo";
const PICTURE = `data:image/png;base64,${png(2, 2).toString("base64")}`;
const SAID: { readonly [path: string]: object } = {
  "/chat/completions": { model: MODEL, messages: words },
  "/messages": { model: MODEL, max_tokens: 50, messages: words },
  "/messages/count_tokens": { model: MODEL, messages: words },
  "/responses": { model: MODEL, input: "Hi" },
  "/responses/input_tokens": { model: MODEL, input: "Hi" },
  "/images/generations": { model: "demo/image", prompt: "A gate", response_format: "b64_json" },
  "/images/edits": {
    model: "demo/image",
    prompt: "A gate",
    images: [{ image_url: PICTURE }],
    response_format: "b64_json",
  },
};
const ROUTES: readonly (readonly [method: string, path: string])[] = [
  ...Object.keys(SAID).map((path) => ["POST", path] as const),
  ["GET", "/responses/resp_nobody"],
  ["DELETE", "/responses/resp_nobody"],
  ["GET", "/responses/resp_nobody/input_items"],
  ["POST", "/responses/resp_nobody/cancel"],
  ["GET", "/models"],
  ["GET", `/models/${MODEL}`],
  ["GET", "/usage"],
];

/** Answered with text only. */
const NEVER = "POST /images/variations";
const AZURE = /^POST \/openai\/deployments\//;

const keyFor = (path: string, key: string): Record<string, string> =>
  path.startsWith("/messages") ? { "x-api-key": key } : { authorization: `Bearer ${key}` };

async function ask(method: string, prefix: string, path: string, headers?: object) {
  const plain = path.replace(/\/$/, "");
  const answer = await fetch(`${house.url}${prefix}${path}`, {
    method,
    headers: { "content-type": "application/json", ...keyFor(path, KEY), ...headers },
    ...(SAID[plain] && { body: JSON.stringify(SAID[plain]) }),
  });
  const body = (await answer.json()) as any;
  const shape = Object.keys(body).toSorted();
  return { status: answer.status, shape, code: body.error?.code, body };
}

describe.each(ROUTES)("%s %s", (method, path) => {
  it.each(["", "/v1", "/v1/v1"].flatMap((prefix) => [`${prefix}|`, `${prefix}|/`]))(
    "under %s",
    async (form) => {
      const [prefix, slash] = form.split("|");
      const { body: _, ...usual } = await ask(method, "/v1", path);
      const { body: __, ...here } = await ask(method, prefix!, path + slash);
      expect(here).toEqual(usual);
      const nobody = path.includes("nobody");
      expect(usual.status).toBe(nobody ? 404 : 200);
      expect(usual.code).not.toBe("unknown_path");
    },
  );

  it("two different keys are rejected", async () => {
    const another = mintKey().secret;
    const other = path.startsWith("/messages")
      ? { authorization: `Bearer ${another}` }
      : { "x-api-key": another };
    const { status, body } = await ask(method, "/v1", path, other);
    expect(status).toBe(401);
    expect(body.error.message).toContain("different keys");
  });

  it("one key in both places is one key", async () => {
    const same = { authorization: `Bearer ${KEY}`, "x-api-key": KEY };
    expect((await ask(method, "/v1", path, same)).status).not.toBe(401);
  });
});

it("all routes are listed here", async () => {
  const { createTestContext } = await import("tollgate/testing");
  await using host = createTestContext();
  const all = await Promise.all(
    [chat, images, messages, models, responses, usage].map((frontend) =>
      (frontend.setup as any)(
        Object.fromEntries(
          Object.entries((frontend.options?.properties ?? {}) as any).map(([name, o]: any) => [
            name,
            o.default,
          ]),
        ),
        host.ctx,
      ),
    ),
  );
  const served = all.flatMap(({ routes }) =>
    routes.map((route: any) => `${route.method} ${[route.path].flat()[0].replace("/v1", "")}`),
  );
  const tried = ROUTES.map(([method, path]) =>
    `${method} ${path}`.replace("resp_nobody", ":id").replace(MODEL, "**:id"),
  );
  expect(new Set(tried)).toEqual(
    new Set(
      // Azure's paths have no other form. Its clients test them.
      served.filter(
        (route) =>
          !route.startsWith("HEAD") && route !== "GET /" && route !== NEVER && !AZURE.test(route),
      ),
    ),
  );
});
