import { GetObjectCommand, PutObjectCommand, S3Client, S3ServiceException } from "@aws-sdk/client-s3";

export async function run() {
  const seen = [];
  const answers = [
    { statusCode: 200, headers: { etag: '"e"' }, body: "" },
    { statusCode: 404, headers: { "content-type": "application/xml" }, body: "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>none</Message></Error>" },
  ];
  const client = new S3Client({
    region: "eu-central-1",
    credentials: { accessKeyId: "AKID", secretAccessKey: "SECRET" },
    maxAttempts: 1,
    requestChecksumCalculation: "WHEN_REQUIRED",
    requestHandler: {
      async handle(request) {
        const { authorization } = request.headers;
        seen.push([request.method, request.hostname, request.path, /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/eu-central-1\/s3\/aws4_request, SignedHeaders=[a-z0-9;-]+, Signature=[0-9a-f]{64}$/.test(authorization), request.headers["x-amz-content-sha256"]]);
        const { statusCode, headers, body } = answers.shift();
        return { response: { statusCode, headers, body: new Blob([body]) } };
      },
    },
  });
  const put = await client.send(new PutObjectCommand({ Bucket: "bucket", Key: "a b/c.txt", Body: "hello", ContentType: "text/plain" }));
  const failed = await client.send(new GetObjectCommand({ Bucket: "bucket", Key: "x" })).catch((e) => [e instanceof S3ServiceException, e.name, e.message]);
  return [put.ETag, seen, failed];
}
