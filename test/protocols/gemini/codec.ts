// The codec with a server of its own kind beside it, so that the laws of all protocols can be asked of it. Model and
// stream stand in the path on this wire; here they travel beside the body.
import type { Protocol, ServerHalf } from "tollgate/plugin";
import { gemini } from "tollgate/protocols/gemini";
import { read } from "./reads.ts";
import { streaming, whole } from "./writes.ts";

const PATH = "~path";
const { client, ...protocol } = gemini();

const server: ServerHalf<"chat"> = {
  schema: {},
  survey: () => ({ features: [] }),
  request: (body) => read(body),
  stream: (write) => streaming(write),
  whole,
  fault: () => ({ body: {} }),
  ping: "",
};

export const withServer: Protocol<"chat"> = {
  ...protocol,
  server,
  client: {
    ...client!,
    request: (r, of) => ({
      ...client!.request(r, of),
      [PATH]: { model: of.model, stream: of.stream },
    }),
  },
};
