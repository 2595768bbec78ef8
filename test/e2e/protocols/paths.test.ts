// For any path, the response has the format of the nearest protocol.
import { request } from "node:http";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { trialCount } from "../../kit/law-effort.ts";

let at: InProcessGateway;
beforeAll(async () => {
  at = await startInProcess({
    yaml: "providers: { demo: { use: demo } }\nmiddleware: [{ use: auth, with: { anonymous: true } }, limits, usage]\nstore: memory\n",
  });
});
afterAll(() => at[Symbol.asyncDispose]());

const ask = (method: string, path: string) =>
  new Promise<{ status: number; body: string }>((resolve, reject) => {
    const { hostname, port } = new URL(at.url);
    const asked = request({ hostname, port, method, path, agent: false }, (answer) => {
      let body = "";
      answer.on("data", (chunk) => (body += chunk));
      answer.on("end", () => resolve({ status: answer.statusCode!, body }));
    });
    asked.on("error", reject);
    asked.end();
  });

/** For each family, the error fields that its SDKs read. */
const SHAPES: Record<string, (told: any) => unknown> = {
  "/v1/responses/": ({ error }) => error.message && "type" in error && "code" in error,
  "/v1/chat/completions/": ({ error }) => error.message && "type" in error && "code" in error,
  "/v1beta/": ({ error }) => error.message && error.status && typeof error.code === "number",
  "/v1beta/openai/": ({ error }) => error.message && "type" in error && "code" in error,
  "/upload/v1beta/": ({ error }) => error.message && error.status,
  "/v1/messages/": ({ type, error }) => type === "error" && error.type && error.message,
};
const odd = fc.oneof(
  fc.constantFrom("%zz", "%", "%E0%A4%A", "%ff", "%00", "..%2f", "a%2fb", "%c0%ae", ";", "%u0041"),
  fc
    .array(fc.constantFrom("%", "z", "2", "f", "/", "E", ".", "~"), { minLength: 1, maxLength: 8 })
    .map((all) => all.join("")),
);

/** A client resolves `..` itself, and may then request another path. */
const staysBelow = (base: string, path: string) =>
  new URL(base + path, "http://gateway.test").pathname.startsWith(base);

it.each(Object.keys(SHAPES))("%s", async (base) => {
  await fc.assert(
    fc.asyncProperty(odd, fc.constantFrom("GET", "POST", "DELETE"), async (path, method) => {
      fc.pre(staysBelow(base, path));
      const { status, body } = await ask(method, base + path);
      expect([400, 404, 405], `${status} ${body}`).toContain(status);
      expect(SHAPES[base]!(JSON.parse(body)), body).toBeTruthy();
    }),
    {
      numRuns: trialCount(60),
      examples: [
        ["%zz", "GET"],
        ["../../", "GET"],
      ],
    },
  );
});

it.each([
  ["POST", "/v1/chat/completion", "POST /v1/chat/completions"],
  ["POST", "/chat/completions/v1/chat/completions", "POST /v1/chat/completions"],
  ["POST", "/api/v1/messages", "POST /v1/messages"],
  ["POST", "/v2/embedd", "POST /v2/embed"],
  ["GET", "/v1/model", "GET /v1/models"],
])("%s %s: suggests the nearest route, and no other", async (method, path, near) => {
  const { status, body } = await ask(method, path);
  const told = JSON.parse(body);
  expect([status, (told.error ?? told).message]).toEqual([
    404,
    `Unknown route ${method} ${path}. Did you mean ${near}?`,
  ]);
});

it.each([
  ["POST", "/nothing"],
  ["POST", `/${"a".repeat(4_000)}`],
  // These frontends are not mounted. Their paths have as many letters as /v1/models and /v1/usage.
  ["GET", "/v1/videos"],
  ["GET", "/v1/files"],
])("an unrelated path suggests checking the client's base URL: %s %.20s", async (method, path) => {
  const { body } = await ask(method, path);
  expect(JSON.parse(body).error.message).toBe(
    `Unknown route ${method} ${path}. Check the base URL of your client.`,
  );
});

it.each(["/v1beta/models/", "/v1/models/", "/models/", "/v1beta/"])(
  "Gemini's methods respond below %s",
  async (base) => {
    const answer = await fetch(`${at.url}${base}demo/echo:generateContent`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ contents: [{ role: "user", parts: [{ text: "Hi" }] }] }),
    });
    expect([answer.status, await answer.json()]).toEqual([
      200,
      expect.objectContaining({ candidates: [expect.anything()] }),
    ]);
  },
);
