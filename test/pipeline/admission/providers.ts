// Provider data other than responses to calls, and events with more than text.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Protocol } from "tollgate/plugin";
import { gemini, geminiImage } from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { createResponseContext, createCallContext } from "tollgate/testing";
import { createProviderClient } from "../../../src/runtime/plugin-host/provider-client.ts";
import { createCredentialClient } from "../../../src/runtime/generation/mount-endpoint.ts";
import {
  startBackend,
  startTestServices,
  type TestServicesOptions,
} from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import { faultIn, type Driver, type Outcome } from "./way.ts";

const MIB = 1024 * 1024;
const LONG = 3_000_000;
const ASKED = 100;
const BLANKS = Buffer.alloc(MIB, " ");

/** A response of this many bytes, which never exist at the same time. */
async function large(n: number, status = 200) {
  const server = createServer((_req, res) => {
    res.writeHead(status, { "content-type": "application/json" });
    let left = n;
    const more = () => {
      while (left > 0 && !res.destroyed) {
        const piece = BLANKS.subarray(0, Math.min(left, MIB));
        left -= piece.length;
        if (!res.write(piece)) return void res.once("drain", more);
      }
      res.end();
    };
    more();
  });
  await new Promise<void>((r) => server.listen(0, "127.0.0.1", r));
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
const credential = { name: "", fields: {}, weight: 1, models: undefined, zdr: undefined };
const signal = new AbortController().signal;

async function fetched(n: number): Promise<Outcome> {
  await using up = await large(n);
  const reach = { base: up.base };
  const origins = new Set([up.base]);
  const line = createProviderClient({
    reach,
    dispatcher: undefined,
    credential,
    signal,
    allowedOrigins: origins,
  });
  return await faultIn(() => line.fetch("/"));
}
async function listed(n: number): Promise<Outcome> {
  await using up = await large(n);
  const endpoints = [{ definition: { base: up.base }, pool: undefined }];
  const provider = { endpoints, credentials: [credential], extraOrigins: new Set([up.base]) };
  const line = createCredentialClient(provider as never, 0, signal);
  return await faultIn(() => line.fetch("/models"));
}
async function kept(n: number, of: Partial<TestServicesOptions>, asked = ASKED): Promise<Outcome> {
  await using up = await large(n);
  const base = createToyProtocol();
  const paths = { ...base.client!.paths, kept: "/kept" };
  const frontend = { ...base, client: { ...base.client!, paths } };
  const endpoints = [{ protocol: frontend, base: up.base, auth: "none" as const }];
  await using s = await startTestServices({
    frontend,
    providers: { p: { endpoints, stateMode: "relay" } },
    ...of,
  });
  const least = JSON.stringify({ model: "p/m", text: "" }).length;
  const body = { model: "p/m", text: "x".repeat(asked - least) };
  const got = await s.ask(body, { path: "/toy/kept" });
  const text = await got.text();
  if (s.house.memoryBudget.usedBytes > 0) throw new Error("It takes up room when it is over.");
  if (got.status === 200 && text.length === n) return "passes";
  return { status: got.status, text, to: frontend as never };
}
/** A provider's response to a plugin's token, as far as its scheme reads it. */
async function refused(n: number): Promise<Outcome> {
  await using up = await large(n, 401);
  let size = 0;
  const auth = {
    sign: () => ({}),
    renewToken: async ({ body }: { body: Buffer }) => ((size = body.length), false),
  };
  const origins = new Set([up.base]);
  const reach = { base: up.base, auth };
  await createProviderClient({
    reach,
    dispatcher: undefined,
    credential,
    signal,
    allowedOrigins: origins,
  }).fetch("/");
  return size === n ? "passes" : size === n - 1 ? "beyond" : { fault: undefined };
}
async function counted(n: number): Promise<Outcome> {
  await using up = await startBackend((_req, res) => {
    const said = JSON.stringify({ tokens: 7 });
    res.writeHead(200).end(said + " ".repeat(n - said.length));
  });
  const frontend = createToyProtocol();
  await using s = await startTestServices({
    frontend,
    providers: {
      p: { endpoints: [{ protocol: createToyProtocol(), base: up.base, auth: "none" }] },
    },
  });
  const got = await s.ask({ model: "p/m", text: "Hi" }, { path: "/toy/count" });
  const text = await got.text();
  return got.status === 200 ? "passes" : { status: got.status, text, to: frontend as never };
}

/** One event of this many bytes without content. */
function* comment(n: number): Generator<Buffer> {
  yield Buffer.from(":");
  let left = n - 3;
  for (; left > MIB; left -= MIB) yield BLANKS;
  yield BLANKS.subarray(0, left);
  yield Buffer.from("\n\n");
}
const pushed = (to: { push(chunk: Buffer): void }, n: number): Promise<Outcome> =>
  faultIn(() => {
    for (const chunk of comment(n)) to.push(chunk);
  });
const events = (...protocols: readonly Protocol<any>[]): Driver =>
  Object.fromEntries(
    protocols.flatMap(({ id, client }) => [
      [
        `${id}, decoded`,
        {
          drive: (n: number) =>
            pushed(
              client!.createDecoder(() => {}, createCallContext(), {}),
              n,
            ),
        },
      ],
      ...(client!.createPassthrough
        ? [
            [
              `${id}, verbatim`,
              { drive: (n: number) => pushed(relayOf(client!.createPassthrough!), n) },
            ],
          ]
        : []),
    ]),
  );
function relayOf(relay: NonNullable<NonNullable<Protocol<any>["client"]>["createPassthrough"]>) {
  const sink = {
    write() {},
    reportContent() {},
    reportStart() {},
    reportUsage() {},
    reportFinish: () => ({}),
  };
  return relay(sink as never, createResponseContext({ stream: true }), {});
}

export const providers = {
  response: {
    "that a plugin fetched": { drive: fetched },
    "that is asked for by its id": {
      most: LONG,
      drive: (n) => kept(n, { bounds: { responseBytes: LONG } }),
    },
  },
  inFlight: {
    // The first MiB needs no reservation. The request is next to it.
    "an answer that is asked for by its id": {
      most: 2 * MIB + ASKED,
      drive: (n) => kept(3 * MIB, { room: 2 * MIB + ASKED }, n - 2 * MIB),
    },
  },
  errorBody: { "to what a plugin fetched": { drive: refused } },
  modelList: { "that is asked for": { drive: listed } },
  countResponse: { "of a provider that can tell": { drive: counted } },
  largeEvent: events(messages(), responses()),
  imageEvent: events(images(), gemini(), geminiImage()),
} satisfies { readonly [name: string]: Driver };
