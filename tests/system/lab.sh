#!/usr/bin/env bash
# The first process of the lab: a systemd user manager with its journal and session bus, in namespaces of its
# own (mount, pid, ipc, uts), for a user who exists only here. Started by lab.py under `unshare`, as root.
#
#   lab.sh DIRECTORY TAG USER UID PATH...
#
# DIRECTORY: scratch, readable for all; `ready` appears in it when the manager answers.
# TAG: name of our cgroup. PATHs: what the user must be able to read, wherever it lies.
# Exit code 77: the kernel refuses something. When this process ends, the kernel ends everything in the lab.
# The manager is started again when it ends: that is what logging out and in does.
set -uo pipefail
lab=$1 tag=$2 user=$3 uid=$4
shift 4

refused() {
  echo "the kernel refuses: $*" >&2
  exit 77
}
fresh() { mount -t tmpfs -o "mode=${2:-755}" tmpfs "$1" || refused "a tmpfs on $1"; }

mount --make-rprivate / || refused "a private mount tree"
mount -t proc proc /proc || refused "a fresh /proc"

# --- what the user must read: put aside, then bound in again below whatever hides it
count=0
for path in "$@"; do
  mkdir -p "$lab/kept/$count"
  mount --bind "$path" "$lab/kept/$count" || refused "a bind mount of $path"
  count=$((count + 1))
done
fresh /home
may_enter() { [ $((0$(stat -L -c %a "$1") & 1)) = 1 ]; }
count=0
for path in "$@"; do
  directory=""
  IFS=/ read -ra names <<<"${path#/}"
  for name in "${names[@]}"; do
    directory=$directory/$name
    [ -d "$directory" ] || break
    [ "$directory" = "$path" ] || may_enter "$directory" || fresh "$directory"
  done
  if [ ! -d "$path" ] || [ -z "$(ls -A "$path")" ]; then
    mkdir -p "$path"
    mount --bind "$lab/kept/$count" "$path" || refused "a bind mount on $path"
  fi
  count=$((count + 1))
done

# --- the user
for file in passwd group; do cp "/etc/$file" "$lab/$file"; done
home=/home/$user
echo "$user:x:$uid:$uid:$user:$home:/bin/sh" >>"$lab/passwd"
echo "$user:x:$uid:" >>"$lab/group"
for file in passwd group; do mount --bind "$lab/$file" "/etc/$file" || refused "a bind mount on /etc/$file"; done
install -d -m 0700 -o "$uid" -g "$uid" "$home"

# --- what sd_booted() and the sandboxes look at, the run-time directory, the journal
fresh /run
fresh /var/log
mkdir -p /run/systemd/system /run/systemd/unit-root /run/systemd/journal /run/log/journal /var/log/journal \
  /run/user /var/lib/systemd
fresh /var/lib/systemd
touch /run/systemd/journal/flushed
mkdir -p /run/systemd/journald.conf.d /var/lib/systemd/linger
printf '[Journal]\nStorage=persistent\nReadKMsg=no\nAudit=no\nRateLimitBurst=0\n' >/run/systemd/journald.conf.d/lab.conf
runtime=/run/user/$uid
install -d -m 0700 -o "$uid" -g "$uid" "$runtime"
fresh "$runtime" 700
chown "$uid:$uid" "$runtime"

# --- cgroups: journald reads the unit's name off these paths
umount -R /sys/fs/cgroup 2>/dev/null
mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup || refused "a cgroup2 mount"
root=/sys/fs/cgroup/$tag
journal=$root/system.slice/systemd-journald.service
manager=$root/user.slice/user-$uid.slice/user@$uid.service
mkdir -p "$root/init.scope" "$journal" "$manager" || refused "a cgroup"
echo $$ >"$root/init.scope/cgroup.procs" || refused "moving into a cgroup"
chown "$uid:$uid" "$manager" "$manager"/cgroup.{procs,subtree_control,threads}

for libexec in /usr/lib/systemd /lib/systemd; do [ -x $libexec/systemd ] && break; done
sh -c "echo \$\$ >'$journal/cgroup.procs'; exec $libexec/systemd-journald" &

settings=(HOME="$home" USER="$user" LOGNAME="$user" SHELL=/bin/sh XDG_RUNTIME_DIR="$runtime"
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
as_user=(setpriv --reuid "$uid" --regid "$uid" --init-groups --reset-env env -i "${settings[@]}")
(
  for _ in $(seq 200); do
    case $("${as_user[@]}" systemctl --user is-system-running 2>/dev/null) in
    running | degraded) touch "$lab/ready" && exit ;;
    esac
    sleep 0.05
  done
) &
while :; do
  sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "$manager" "${as_user[@]}" "$libexec/systemd" --user \
    --log-target=journal &
  echo $! >"$lab/manager"
  wait $!
done
