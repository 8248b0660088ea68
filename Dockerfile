# docker build -t gpudoctor . && docker run --rm --gpus all gpudoctor
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY . .
RUN go build -trimpath -tags urfave_cli_no_docs -gcflags=github.com/gpudoctor/gpudoctor/cmd/...=-l -gcflags=github.com/gpudoctor/gpudoctor/remedies/...=-l -gcflags=github.com/gpudoctor/gpudoctor/checks/...=-l -gcflags=github.com/gpudoctor/gpudoctor/checks/text= -gcflags=github.com/gpudoctor/gpudoctor/checks/text/parse= -gcflags=github.com/gpudoctor/gpudoctor/checks/text/nccl= -gcflags=github.com/gpudoctor/gpudoctor/checks/text/progress= -gcflags=github.com/gpudoctor/gpudoctor/checks/message= -gcflags=github.com/gpudoctor/gpudoctor/checks/internal/pattern= -ldflags='-s -w' -o /gpudoctor ./cmd/gpudoctor

# It has glibc, which the driver's libraries need, and neither a shell nor packages.
FROM gcr.io/distroless/base-debian12
COPY --from=build /gpudoctor /usr/bin/gpudoctor
# NVIDIA's container toolkit mounts the driver's libraries by these.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
ENTRYPOINT ["gpudoctor"]
CMD ["check"]
