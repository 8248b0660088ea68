# docker build -t gpudoctor . && docker run --rm --gpus all gpudoctor
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY . .
RUN go build -trimpath -tags urfave_cli_no_docs -ldflags='-s -w' -o /gpudoctor ./cmd/gpudoctor

# It has glibc, which the driver's libraries need, and neither a shell nor packages.
FROM gcr.io/distroless/base-debian12
COPY --from=build /gpudoctor /usr/bin/gpudoctor
# NVIDIA's container toolkit mounts the driver's libraries by these.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
ENTRYPOINT ["gpudoctor"]
CMD ["check"]
