// A route's name selects the path of an endpoint, and an endpoint without such a path is never
// called for it.
import { describe, expect, it } from "vitest";
import { startUpstream } from "tollgate/testing";
import { startTestServices } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const answer = {
  body: '{"say":"Hello"}\n{"usage":{"input":3,"output":1}}\n{"end":"stop"}\n',
  headers: { "content-type": "application/json" },
};

async function asked(name: string, paths: readonly (Record<string, string> | undefined)[]) {
  await using up = await startUpstream({ "*": answer });
  const providers = Object.fromEntries(
    paths.map((paths, i) => [
      `p${i}`,
      {
        endpoints: [
          { protocol: createToyProtocol(), base: up.url, auth: "none", ...(paths && { paths }) },
        ],
      },
    ]),
  );
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: providers as never,
    models: { m: paths.map((_, i) => `p${i}/m`) },
    read: async () => ({ model: "m", action: name }),
  });
  const res = await s.ask({ model: "m", text: "hi" });
  const text = await res.text();
  return { status: res.status, text, reached: up.requests.map(({ path }) => path) };
}

describe("a route's name", () => {
  it("is never served by another operation", async () => {
    for (const name of ["edits", "constructor", "__proto__", "toString"]) {
      const { status, text, reached } = await asked(name, [undefined]);
      expect(reached).toEqual([]);
      expect(status).toBe(400);
      expect(text).toContain(`its endpoint does not support ${name}`);
    }
  });
  it("selects the endpoints with a path for it", async () => {
    const { reached, text } = await asked("edits", [undefined, { edits: "/toy/edits" }]);
    expect(reached, text).toEqual(["/toy/edits"]);
  });
  it("an endpoint's own path has priority over its protocol's", async () => {
    expect((await asked("generate", [{ generate: "/own" }])).reached).toEqual(["/own"]);
    expect((await asked("generate", [undefined])).reached).toEqual(["/toy"]);
  });
});
