// The chat endpoint's own decisions: its path, and the key that counts.
import { describe, expect, test } from "vitest";
import chat from "../../plugins/frontends/chat-completions.ts";
import { getFault, type Frontend, type HeadersIn } from "../../src/plugin/index.ts";
import { createTestContext } from "../../src/testing/index.ts";

async function mounted(accept: ("bearer" | "x-api-key")[] = ["bearer"]): Promise<Frontend> {
  await using host = createTestContext();
  return chat.setup({ accept }, host.ctx);
}
async function secret(headers: HeadersIn, accept?: ("bearer" | "x-api-key")[]) {
  const { extractCredential: read } = await mounted(accept);
  try {
    return read!(headers, new URLSearchParams());
  } catch (error) {
    return getFault(error)?.message;
  }
}

describe("the key", () => {
  test("is a Bearer token", async () => {
    expect(await secret({ authorization: "Bearer k1" })).toBe("k1");
    expect(await secret({ authorization: "bearer  k1 " })).toBe("k1");
    expect(await secret({})).toBeUndefined();
  });
  test("in another place is rejected with the right place", async () => {
    expect(await secret({ "x-api-key": "k1" })).toMatch(/Authorization: Bearer/);
    expect(await secret({ authorization: "Basic eDp5" })).toMatch(/Authorization: Bearer/);
  });
  test("is accepted in x-api-key if the operator allows it", async () => {
    expect(await secret({ "x-api-key": "k1" }, ["bearer", "x-api-key"])).toBe("k1");
  });
  test("may be in both places, but must be the same", async () => {
    expect(await secret({ authorization: "Bearer k1", "x-api-key": "k1" })).toBe("k1");
    for (const accept of [["bearer"], ["bearer", "x-api-key"]] as ("bearer" | "x-api-key")[][])
      expect(await secret({ authorization: "Bearer k1", "x-api-key": "k2" }, accept)).toMatch(
        /different keys/,
      );
  });
});

test("is accepted with the version in the path, without it, and with it twice", async () => {
  const { routes, protocol } = await mounted();
  expect(routes.flatMap((r) => r.path)).toEqual([
    "/v1/chat/completions",
    "/chat/completions",
    "/v1/v1/chat/completions",
    "/openai/v1/chat/completions",
    "/openai/chat/completions",
    "/v1beta/openai/chat/completions",
    "/openai/deployments/:model/chat/completions",
    "/openai/deployments/:provider/:model/chat/completions",
    "/openai/deployments/:provider/:vendor/:model/chat/completions",
  ]);
  expect(protocol!.id).toBe("chat-completions");
});
