// Frontend for /v1/files, /v1/uploads, and batches: stores the files of clients, encrypted, and runs
// their lines. One path serves the SDKs of OpenAI and Anthropic.
import { parseWebhookSecret, WEBHOOK_SECRET_HINT } from "tollgate/plugin";
import { defineFrontend } from "tollgate/plugin";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { anthropicBatchRoutes } from "./jobs/anthropic-batches.ts";
import { BatchEngine } from "./jobs/batch-engine.ts";
import { createBatchKind } from "./jobs/reports/batch-kind.ts";
import { BatchRecords } from "./jobs/batch-record.ts";
import { BatchService } from "./jobs/batch-service.ts";
import { fileRoutes } from "./jobs/file-routes.ts";
import { FileService } from "./jobs/file-service.ts";
import { openaiBatchRoutes } from "./jobs/openai-batches.ts";
import { isAnthropicClient } from "./jobs/request-fields.ts";
import { Storage } from "./jobs/storage.ts";
import { uploadRoutes } from "./jobs/upload-routes.ts";
import { Webhooks } from "./jobs/reports/webhooks.ts";
import { UploadService } from "./jobs/upload-service.ts";

const openai = images().server!;
const anthropic = messages().server!;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MIB = 1024 * 1024;

const textsOption = (description: string) =>
  ({ type: "array", items: { type: "string", minLength: 1 }, minItems: 1, description }) as const;

export default defineFrontend({
  api: 1,
  name: "jobs",
  summary: "Store files of clients and run their batches",
  stability: "experimental",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      accept: acceptOption("bearer", "x-api-key", "api-key"),
      dir: {
        type: "string",
        "x-path": true,
        minLength: 1,
        description:
          "Folder for the content of files, relative to gateway.yaml. Gateways with one store share files if this folder is on a shared disk. If unset, each gateway keeps the content of its own files in state_dir.",
      },
      max_file_mb: {
        type: "integer",
        minimum: 1,
        maximum: 8_192,
        default: 512,
        description: "Maximum size of a file, in MiB",
      },
      max_account_mb: {
        type: "integer",
        minimum: 1,
        maximum: 1_048_576,
        default: 10_240,
        description: "Maximum size of all files of an account, or of a key without one, in MiB",
      },
      webhooks: {
        type: "array",
        maxItems: 64,
        default: [],
        description: "Receivers of webhooks, which report the end of jobs. Default: none",
        items: {
          type: "object",
          additionalProperties: false,
          required: ["url", "secret"],
          properties: {
            url: {
              type: "string",
              pattern: "^https?://",
              "x-expects": "an address such as https://app.example.com/webhooks",
              "x-origin": true,
              "x-secret": true,
              description: "URL of the receiver",
            },
            secret: {
              type: "string",
              "x-secret": true,
              description: "Secret that signs the webhooks: whsec_ and 24 to 64 bytes in base64",
            },
            events: textsOption(
              "Types of events, such as batch.completed or batch.*. Default: all",
            ),
            accounts: textsOption(
              "Accounts whose jobs are reported, without nested accounts. Default: all",
            ),
            keys: textsOption("IDs of the keys whose jobs are reported. Default: all"),
          },
        },
      },
      keep_batches_days: {
        type: "integer",
        minimum: 1,
        maximum: 365,
        default: 30,
        description: "Number of days for which an ended batch can be read and is listed",
      },
    },
  },
  check: ({ webhooks }) =>
    webhooks.flatMap(({ secret }, n) =>
      parseWebhookSecret(secret)
        ? []
        : [
            {
              path: `/webhooks/${n}/secret`,
              message: "is not a valid webhook secret",
              hint: WEBHOOK_SECRET_HINT,
            },
          ],
    ),
  setup({ webhooks: receivers, accept: schemes, dir, ...options }, ctx) {
    const limits = {
      fileBytes: options.max_file_mb * MIB,
      ownerBytes: options.max_account_mb * MIB,
      batchMs: options.keep_batches_days * DAY_MS,
    };
    const storage = new Storage(ctx, limits, dir);
    const files = new FileService(storage);
    const records = new BatchRecords(() => storage.jobs);
    const engine = new BatchEngine(storage, records);
    const batches = new BatchService(storage, records, engine.wake);
    const webhooks = new Webhooks(ctx, receivers);
    if (ctx.jobs) {
      engine.start();
      webhooks.start();
    }
    ctx.runEvery(HOUR_MS, () => files.sweep());
    return {
      extractCredential: (headers) => extractCredential(headers, schemes),
      encodeFault: (fault, x) =>
        (isAnthropicClient(x) ? anthropic : openai).encodeFault(fault, { id: x.id }),
      routes: [
        ...fileRoutes(files),
        ...uploadRoutes(new UploadService(storage, files)),
        ...openaiBatchRoutes(batches, files),
        ...anthropicBatchRoutes(batches, files),
      ],
      jobKinds: [createBatchKind(batches)],
      beforeJobEnds: (job) => webhooks.announce(job),
    };
  },
});
