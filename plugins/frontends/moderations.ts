// Frontend for POST /v1/moderations, for OpenAI's SDKs and compatible clients, which may omit the
// model.
import { defineFrontend, fail, type Body } from "tollgate/plugin";
import { moderations } from "tollgate/protocols/moderations";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { versionedPaths } from "./route-paths.ts";

export default defineFrontend({
  api: 1,
  name: "moderations",
  summary: "Serve OpenAI moderations",
  stability: "beta",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      accept: acceptOption("bearer"),
      default_model: {
        type: "string",
        minLength: 1,
        description:
          "Model for requests that do not name one. If unset, these requests are rejected",
      },
    },
  },
  setup: ({ accept: schemes, default_model: defaultModel }) => ({
    protocol: moderations(),
    extractCredential: (headers) => extractCredential(headers, schemes),
    routes: [
      {
        method: "POST",
        path: versionedPaths("/moderations"),
        actionType: "generate",
        readInput: (_x, body) => {
          const model = modelIn(body, defaultModel);
          return { model, stream: false, edits: body["model"] === model ? {} : { model } };
        },
      },
    ],
  }),
});

const modelIn = ({ model }: Body, defaultModel: string | undefined): string =>
  typeof model === "string"
    ? model
    : (defaultModel ??
      fail("invalid", "Missing model.", {
        param: "model",
        code: "missing_required_parameter",
      }));
