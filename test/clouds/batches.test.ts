// The batches of the cloud packages, at fakes of the clouds' batch APIs and object storage.
import { describe, it } from "vitest";
import { conformanceChecks } from "tollgate/testing";
import aws from "../../plugins/providers/aws/index.ts";
import foundry from "../../plugins/providers/azure-foundry/index.ts";
import vertex from "../../plugins/providers/vertex/index.ts";
import { azureFormat } from "../plugins/batches/formats.ts";
import { bedrockFormat, vertexFormat } from "./batch-formats.ts";
import { ACCOUNT } from "./google-fake.ts";

describe.each([
  [
    "aws",
    conformanceChecks(aws, {
      with: {
        region: "eu-central-1",
        batch_uri: "s3://bucket/tollgate",
        batch_role: "arn:aws:iam::123456789012:role/batch",
      },
      credential: { access_key_id: "AKIDCANARY", secret_access_key: "canary-7f3a-secret" },
      batches: bedrockFormat,
    }),
  ],
  [
    "vertex",
    conformanceChecks(vertex, {
      with: { project: "my-project", batch_uri: "gs://bucket/tollgate" },
      credential: { service_account: ACCOUNT },
      batches: vertexFormat,
    }),
  ],
  [
    "azure-foundry",
    conformanceChecks(foundry, {
      with: { resource: "my-resource", batch_deployments: ["*"] },
      credential: { api_key: "canary-7f3a-secret" },
      batches: azureFormat,
    }),
  ],
])("%s", (_name, checks) => {
  for (const { name, run } of checks.filter((check) => check.name.includes(": batches: ")))
    it(name, run);
});
