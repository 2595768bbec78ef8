// Failures that another candidate may fix at another price: a larger context window, or another
// policy. It is called only if the operator configured it.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ERRORS, fail, type ErrorKind, type Protocol } from "tollgate/plugin";
import {
  startBackend,
  startTestServices,
  type TestServicesOptions,
} from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const ASKED = (Object.keys(ERRORS) as ErrorKind[]).filter((kind) => ERRORS[kind][1] === "opt_in");
const LINE = { id: "u", model: "m", say: "Hello", usage: { input: 1, output: 1 }, end: "stop" };

/** A codec that decodes each error as the test states. */
function saying(kind: ErrorKind, id = "toy"): Protocol<"chat"> {
  const protocol = createToyProtocol(id);
  return {
    ...protocol,
    client: { ...protocol.client!, decodeFault: () => ({ kind, message: "No." }) },
  };
}

const endpoint = (base: string, protocol: Protocol) => ({
  endpoints: [{ protocol, base, auth: "none" as const }],
});

/** Calls a route of two: the first rejects with this kind, and the second responds. */
async function asked(of: {
  kind: ErrorKind;
  on: readonly ErrorKind[];
  id?: string;
  stream?: boolean;
  hooks?: TestServicesOptions["hooks"];
}) {
  await using refuses = await startBackend((_req, res) => {
    res.writeHead(400, { "content-type": "application/json" });
    res.end('{"error":"No."}');
  });
  await using answers = await startBackend((req, res) => {
    const stream = JSON.parse(req.body).stream === true;
    res.setHeader("content-type", stream ? "text/event-stream" : "application/json");
    res.end(`${JSON.stringify(LINE)}\n`);
  });
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: {
      a: endpoint(refuses.base, saying(of.kind, of.id)),
      b: endpoint(answers.base, saying(of.kind, of.id)),
    },
    models: { any: ["a/m", "b/m"] },
    on: of.on,
    ...(of.hooks && { hooks: of.hooks }),
  });
  const res = await s.ask({ model: "any", text: "hi", stream: of.stream ?? false });
  await res.text();
  const states = s.journal.filter((row) => row.do === "settle").map((row) => row.state);
  return {
    status: res.status,
    asked: [refuses.asked.length, answers.asked.length],
    states,
    rests: s.house.targetHealth.describeCooldowns(),
    again: res.headers.get("x-should-retry"),
  };
}

it("a route can list the context length and the content policy", () =>
  expect(ASKED).toEqual(["context_length", "content_policy"]));

describe.each(ASKED)("%s", (kind) => {
  it("causes a fallback if the route lists it, in both modes, streaming and non-streaming", async () => {
    for (const id of ["toy", "other"])
      for (const stream of [false, true])
        expect(await asked({ kind, on: [kind], id, stream })).toMatchObject({
          status: 200,
          asked: [1, 1],
          states: ["void", "unpriced"],
          rests: [],
        });
  });

  it("is returned to the client if the route does not list it", async () => {
    const others = (Object.keys(ERRORS) as ErrorKind[]).filter((other) => other !== kind);
    await fc.assert(
      fc.asyncProperty(fc.subarray(others), async (on) => {
        expect(await asked({ kind, on })).toMatchObject({
          status: 400,
          asked: [1, 0],
          again: "false",
        });
      }),
      { numRuns: 12 },
    );
  });

  it("of a hook is final, whatever the route lists", async () => {
    const hooks: TestServicesOptions["hooks"] = [{ attempt: async () => fail(kind, "Not here.") }];
    expect(await asked({ kind, on: [kind], hooks })).toMatchObject({ status: 400, asked: [0, 0] });
    const later: TestServicesOptions["hooks"] = [
      {
        async attempt(_call, next) {
          await next().catch(() => {});
          return fail(kind, "Not here.");
        },
      },
    ];
    expect(await asked({ kind, on: [kind], hooks: later })).toMatchObject({ asked: [1, 0] });
  });
});
