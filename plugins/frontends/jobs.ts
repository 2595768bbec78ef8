// Frontend for /v1/files, /v1/uploads, and batches: stores the files of clients, encrypted, and runs
// their lines. One path serves the SDKs of OpenAI and Anthropic.
import { parseWebhookSecret, WEBHOOK_SECRET_HINT } from "tollgate/plugin";
import { defineFrontend } from "tollgate/plugin";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { anthropicBatchRoutes } from "./jobs/routes/anthropic-batches.ts";
import { BatchEngine } from "./jobs/batch-engine.ts";
import { createBatchKind } from "./jobs/reports/batch-kind.ts";
import { BatchRecords } from "./jobs/batch-record.ts";
import { BatchService } from "./jobs/batch-service.ts";
import { fileRoutes } from "./jobs/routes/file-routes.ts";
import { FileService } from "./jobs/file-service.ts";
import { LinePace } from "./jobs/line-pace.ts";
import { openaiBatchRoutes } from "./jobs/routes/openai-batches.ts";
import { isAnthropicClient } from "./jobs/routes/request-fields.ts";
import { Storage } from "./jobs/storage.ts";
import { uploadRoutes } from "./jobs/routes/upload-routes.ts";
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
      run_lines: {
        type: "object",
        additionalProperties: false,
        required: ["per_minute"],
        description:
          "Sends the requests of a batch one by one if no provider of their model runs batches. They run at low priority and at the price of ordinary requests. Default: such requests are rejected",
        properties: {
          per_minute: {
            type: "integer",
            minimum: 1,
            maximum: 60_000,
            description: "Maximum number of requests per minute, in each gateway process",
          },
          concurrent: {
            type: "integer",
            minimum: 1,
            maximum: 256,
            default: 4,
            description: "Maximum number of requests at the same time, in each gateway process",
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
  setup({ webhooks: receivers, accept: schemes, dir, run_lines: runLines, ...options }, ctx) {
    const limits = {
      fileBytes: options.max_file_mb * MIB,
      ownerBytes: options.max_account_mb * MIB,
      batchMs: options.keep_batches_days * DAY_MS,
    };
    const storage = new Storage(ctx, limits, dir);
    const files = new FileService(storage);
    const records = new BatchRecords(() => storage.jobs);
    const pace =
      runLines && new LinePace({ perMinute: runLines.per_minute, concurrent: runLines.concurrent });
    const engine = new BatchEngine(storage, records, pace);
    const batches = new BatchService(storage, records, engine.wake, pace !== undefined);
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
