import { defineFrontend, fail } from "tollgate/plugin";
import { speech } from "./speech.ts";
import { transcripts } from "./transcript.ts";

const heard = transcripts();
const spoken = speech();

export default defineFrontend({
  api: 1,
  name: "audio",
  summary: "OpenAI's audio, and both of it at one address",
  setup: () => ({
    protocol: heard,
    routes: [
      {
        method: "POST",
        path: "/v1/audio/transcriptions",
        actionType: "generate",
        body: "multipart",
      },
      {
        method: "POST",
        path: "/v1/audio/speech",
        actionType: "generate",
        protocol: spoken,
        // Clients read it as it arrives, and do not request a stream.
        readInput: (_x, { model }) =>
          typeof model === "string" ? { model, stream: true } : fail("invalid", "Name a model."),
      },
      {
        method: "POST",
        path: "/any/:model",
        actionType: "generate",
        body: "either",
        protocols: [spoken],
        readInput: ({ params }, body) =>
          "input" in body
            ? { model: `passing/${params["model"]}`, protocol: spoken, stream: true }
            : { model: `passing/${params["model"]}`, edits: { model: params["model"] } },
      },
    ],
    extractCredential: (headers, query) =>
      (query.get("key") || undefined) ?? /^Bearer (\S+)$/.exec(headers.authorization ?? "")?.[1],
  }),
});
