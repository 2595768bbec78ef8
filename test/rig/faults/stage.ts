// Setting for failures: an upstream controlled by the prompt, a valid or invalid TLS server in
// front of it, dead ports, and a gateway with a provider of each kind at each of them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import {
  jsonResponse,
  startUpstream,
  type ScriptedResponse,
  type UpstreamRequest,
} from "tollgate/testing";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { preloaded, type ChangedSource } from "../mutants/changed-source.ts";
import { certificates } from "./certificates.ts";
import { LIMITS, PLACES, type Place } from "./failure-modes.ts";
import { UPSTREAMS, type UpstreamName } from "./request-paths.ts";
import { CLOSED_PORT } from "../../kit/process/ports.ts";

export interface Stage extends AsyncDisposable {
  readonly daemon: Daemon;
}

const KEY = "${env:RIG_KEY}";
const HOST = "tls.faults.test";
/** The start of a response with SETTINGS, like HTTP/2. */
const SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
/** Pending connections at a port that accepts none, so that a further one gets no reply. */
const WAITING = 4;

/** Number of models at a place, by protocol. */
export type Models = ReadonlyMap<`${Place} ${UpstreamName}`, number>;

/** `answer`: by the prompt. `plant`: the gateway's defect. */
export async function openStage(
  answer: (asked: UpstreamRequest) => ScriptedResponse,
  models: Models,
  plant?: ChangedSource,
): Promise<Stage> {
  const stack = new AsyncDisposableStack();
  try {
    const dir = await mkdtemp(join(tmpdir(), "tollgate-faults-"));
    stack.defer(() => rm(dir, { recursive: true, force: true }));
    const up = await startUpstream({
      "POST /*": answer,
      "GET /*": jsonResponse({ object: "list", data: [] }),
    });
    stack.use(up);
    const { root, ...leaves } = certificates(HOST);
    await writeFile(join(dir, "root.pem"), root);
    const tls = (options: TlsOptions, each = forward(up.port)) =>
      opened(stack, createTlsServer(options, each));
    const ports = {
      tls: await tls(leaves.good),
      expired: await tls(leaves.expired),
      stranger: await tls(leaves.stranger),
      selfSigned: await tls(leaves.selfSigned),
      alpn: await tls({ ...leaves.good, ALPNProtocols: ["h2"] }),
      h2: await tls(leaves.good, (socket) => void socket.write(SETTINGS)),
      stalled: await opened(
        stack,
        createServer((socket) => void socket.on("error", () => {})),
      ),
      hole: await holePort(stack),
    };
    // The second address of a name with two.
    await opened(stack, createServer(forward(up.port)), up.port, "127.0.0.2");
    const places: Record<Place, string> = {
      plain: up.url,
      nowhere: "http://nowhere.faults.test:9",
      silent: "http://silent.faults.test:9",
      flips: `http://flips.faults.test:${up.port}`,
      rebound: `http://rebound.faults.test:${up.port}`,
      closed: `http://127.0.0.1:${CLOSED_PORT}`,
      hole: `http://127.0.0.1:${ports.hole}`,
      tls: `https://${HOST}:${ports.tls}`,
      expired: `https://${HOST}:${ports.expired}`,
      stranger: `https://${HOST}:${ports.stranger}`,
      selfsigned: `https://${HOST}:${ports.selfSigned}`,
      alpn: `https://${HOST}:${ports.alpn}`,
      h2: `https://${HOST}:${ports.h2}`,
      stalled: `https://${HOST}:${ports.stalled}`,
    };
    const daemon = await startDaemon({
      yaml: yaml(places, models),
      env: {
        RIG_KEY: "sk-upstream-rig",
        NODE_EXTRA_CA_CERTS: join(dir, "root.pem"),
        ...preloaded(plant, join(import.meta.dirname, "names.mjs")),
      },
    });
    stack.use(daemon);
    const all = stack.move();
    return { daemon, [Symbol.asyncDispose]: () => all.disposeAsync() };
  } catch (problem) {
    await stack.disposeAsync();
    throw problem;
  }
}

const yaml = (places: Record<Place, string>, models: Models) => `
frontends: [chat-completions, messages, responses, gemini, images, embeddings, rerank, speech, transcriptions, moderations, completions]
middleware: [auth, limits, { use: usage, with: { label_headers: [x-rig] } }]
store: memory
retries: { per_target: 1, total: 1 }
timeouts: { ${Object.entries(LIMITS)
  .map(([name, ms]) => `${name}: ${ms}ms`)
  .join(", ")} }
providers:
${PLACES.map((place) => providersAt(place, places[place], models)).join("")}`;

/** The model's operation, if its name does not show it. */
const SAID: { readonly [U in UpstreamName]?: string } = {
  responses: "protocols: [responses]",
  images: "operation: image",
  "gemini-image": "operation: image",
  embeddings: "operation: embedding",
  "gemini-vectors": "operation: embedding",
  rerank: "operation: rerank",
  speech: "operation: speech",
  transcriptions: "operation: transcript",
  moderations: "operation: moderation",
  completions: "operation: completion",
};

const providersAt = (place: Place, url: string, models: Models): string => {
  const named = (of: string) =>
    `models: { ${Object.entries(SAID)
      .filter(([into]) => UPSTREAMS[into as UpstreamName].provider === of)
      .flatMap(([into, said]) =>
        Array.from(
          { length: models.get(`${place} ${into as UpstreamName}`) ?? 1 },
          (_, i) => `${UPSTREAMS[into as UpstreamName].model}${i}: { ${said} }`,
        ),
      )
      .join(", ")} }`;
  return `
  ${place}-chat: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: "${KEY}", images: ["draw*"], image_streams: true, image_edits: true, embeddings: ["vec*"], rerank: ["rank*"], speech: ["voice*"], transcriptions: ["ear*"], list_models: false }, ${named("chat")} }
  ${place}-messages: { use: anthropic-compatible, with: { base_url: "${url}/v1", api_key: "${KEY}" } }
  ${place}-google: { use: google, with: { base_url: "${url}", api_key: "${KEY}" }, ${named("google")} }
  ${place}-responses: { use: openai, with: { base_url: "${url}/v1", api_key: "${KEY}" }, ${named("responses")} }
  ${place}-bases: { use: vllm, with: { base_url: "${url}/v1", api_key: "${KEY}" }, ${named("bases")} }
`;
};

const forward =
  (port: number) =>
  (socket: Socket): void => {
    const further = connect(port, "127.0.0.1");
    socket.on("error", () => further.destroy()).pipe(further);
    further.on("error", () => socket.destroy()).pipe(socket);
  };

async function opened(
  stack: AsyncDisposableStack,
  server: Server,
  port = 0,
  host = "127.0.0.1",
): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket.on("error", () => {}));
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("tlsClientError", () => {});
  server.listen(port, host);
  await once(server, "listening");
  stack.defer(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function holePort(stack: AsyncDisposableStack): Promise<number> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "hole.mjs")]);
  stack.defer(() => void child.kill("SIGKILL"));
  const [said] = (await once(child.stdout, "data")) as [Buffer];
  const port = Number(said.toString());
  for (let i = 0; i < WAITING; i++) {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    stack.defer(() => void socket.destroy());
  }
  return port;
}
