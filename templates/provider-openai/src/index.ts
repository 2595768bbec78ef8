import { apiKeySchema, defineProvider } from "tollgate/plugin";
import { openAiBatches } from "tollgate/protocols/batches";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { fetchModelList } from "tollgate/protocols/compatible";
import { openAiVideos } from "tollgate/protocols/videos";

const auth = { header: "authorization", prefix: "Bearer ", field: "api_key" } as const;

export default defineProvider({
  api: 1,
  name: "acme",
  summary: "Acme, through OpenAI's Chat Completions API",
  credential: apiKeySchema,
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      base_url: {
        type: "string",
        minLength: 1,
        default: "https://api.acme.example/v1",
        "x-origin": true,
        description: "Base URL of the API",
      },
    },
  },
  setup: ({ base_url }) => ({
    endpoints: [
      {
        // Set the differences from OpenAI here: fields to drop or rename, and how reasoning is requested.
        protocol: chatCompletions({ maxTokens: "max_tokens" }),
        base: base_url,
        auth,
        // Files and batches as OpenAI's. Remove this line if the API has none.
        batches: openAiBatches(),
        servesModel: (model) => !isVideoModel(model),
      },
      {
        // Videos as OpenAI's, which are jobs: they are created, polled, and billed when they have
        // ended. Remove this endpoint if the API has none.
        operation: "video",
        base: base_url,
        auth,
        videos: openAiVideos(),
        servesModel: isVideoModel,
      },
    ],
    listModels: (line) => fetchModelList(line, {}, new Set(["chat", "video"])),
  }),
});

/** Whether a model generates videos. It must be pure. */
function isVideoModel(model: string): boolean {
  return model.startsWith("film-");
}
