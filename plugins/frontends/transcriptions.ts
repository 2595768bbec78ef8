// POST /v1/audio/transcriptions and /v1/audio/translations, for OpenAI's SDKs and whatever speaks like them; with /v1, without, or with
// it twice, since that is how base addresses are pasted.
import { defineFrontend } from "tollgate/plugin";
import { transcriptions } from "tollgate/protocols/transcriptions";
import { at, deployed, deployment, onAzure, unnamed } from "./paths.ts";
import { accept, presented } from "./presented.ts";

const BOTH = [
  ["generate", "/audio/transcriptions"],
  ["translations", "/audio/translations"],
] as const;

export default defineFrontend({
  api: 1,
  name: "transcriptions",
  summary: "OpenAI's transcriptions and translations of sound",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: { accept: accept("bearer", "api-key") },
  },
  setup: ({ accept: schemes }) => ({
    protocol: transcriptions(),
    secret: (headers) => presented(headers, schemes),
    routes: BOTH.flatMap(([name, path]) => [
      {
        method: "POST",
        path: [...at(path), ...onAzure(path)],
        op: "generate" as const,
        name,
        body: "multipart" as const,
      },
      {
        method: "POST",
        path: deployed(path),
        op: "generate" as const,
        name,
        body: "multipart" as const,
        protocol: unnamed(transcriptions()),
        read: deployment,
      },
    ]),
  }),
});
