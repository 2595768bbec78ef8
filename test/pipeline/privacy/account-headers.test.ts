// Response headers about the operator's account are not forwarded, in any mode and protocol, in
// responses and errors.
import { describe, expect, it } from "vitest";
import type { Protocol } from "tollgate/plugin";
import { images } from "tollgate/protocols/images";
import { chats, LEAST } from "../../protocols/generators/codecs.ts";
import { upstreamAnswers } from "../../protocols/linear/answers.ts";
import { startBackend, startTestServices } from "../../kit/test-services.ts";

/** Headers that the providers of these protocols document. */
const ACCOUNT = {
  "openai-organization": "org-1",
  "openai-project": "proj-1",
  "anthropic-organization-id": "org-2",
  "anthropic-ratelimit-requests-limit": "4000",
  "anthropic-ratelimit-input-tokens-remaining": "1",
  "anthropic-ratelimit-unified-status": "allowed",
  "x-ratelimit-limit-requests": "10000",
  "x-ratelimit-remaining-tokens": "1",
  "x-ratelimit-reset-requests": "1s",
  "x-ms-region": "East US",
  "x-request-id": "theirs",
  "request-id": "theirs",
  "set-cookie": "__cf_bm=x",
  "cf-ray": "x",
  "x-account-balance": "12",
  "x-goog-user-project": "p",
};

const protocols: { readonly [id: string]: Protocol } = { ...chats, images: images() };
const BODIES: { readonly [id: string]: object } = { ...LEAST, images: { prompt: "a harbour" } };

/** A protocol with the loosest possible header list. */
const loose = (protocol: Protocol): Protocol => ({
  ...protocol,
  headers: { response: ["openai-*", "anthropic-*", "x-*", "set-cookie"] },
});

describe.each(Object.keys(protocols))("%s", (id) => {
  const [answer] = Object.values(upstreamAnswers[id]!.wholes);
  it.each([
    ["an answer", 200, {}, protocols[id]!],
    ["a refusal", 400, {}, protocols[id]!],
    ["an answer, let through by a loose list", 200, {}, loose(protocols[id]!)],
  ] as const)("%s", async (_name, status, more, protocol) => {
    await using up = await startBackend((_req, res) => {
      res.writeHead(status, {
        ...ACCOUNT,
        "openai-version": "v",
        "content-type": "application/json",
      });
      res.end(status === 200 ? answer!(1) : '{"error":{"message":"no"}}');
    });
    await using s = await startTestServices({
      frontend: protocol,
      providers: {
        p: {
          endpoints: [{ protocol, base: up.base, auth: "none" }],
          facts: new Map([["m", { operation: protocol.operationSpec.name }]]),
        },
      },
    } as never);
    const answered = await s.ask({ model: "p/m", ...BODIES[id], ...more });
    await answered.text();
    expect(answered.status).toBe(status);
    const told = [...answered.headers].filter(
      ([name, value]) => (ACCOUNT as Record<string, string>)[name] === value,
    );
    expect(told.filter(([name]) => !HARMLESS.has(name))).toEqual([]);
    expect(answered.headers.get("openai-version")).toBe("v");
  });
});

/** About no account: a loose list forwards them. */
const HARMLESS = new Set(["x-ms-region", "x-request-id", "request-id", "cf-ray"]);
