"""A loop of one's own: PPO in one file, paid by a reward model. The four lines are marked.

python examples/single_file_ppo.py [STEPS]
"""

import sys

import gymnasium
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn
from torch.distributions import Normal

import irrl
from irrl.adapters.gymnasium import Rewarded
from irrl.returns import gae

CODES, N, T, STEPS = 8, 32, 25, int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
torch.manual_seed(0)


def network(outputs):
    return nn.Sequential(nn.Linear(5 + CODES, 64), nn.Tanh(), nn.Linear(64, outputs))


def vector(seen):
    return torch.cat([torch.tensor(seen["observation"]), torch.tensor(seen["code"])], -1)


make = [lambda: irrl.envs.Skills(gymnasium.make("irrl/PointMass-v0"), CODES)] * N
envs = SyncVectorEnv(make, autoreset_mode=AutoresetMode.SAME_STEP)
model = irrl.RewardModel(envs.single_observation_space["observation"], CODES, mode="skills")
env = Rewarded(envs, model)
actor, critic, log_std = network(2), network(1), nn.Parameter(torch.full((2,), -0.5))
adam = torch.optim.Adam([*actor.parameters(), *critic.parameters(), log_std], 3e-3)
seen = vector(env.reset(seed=0)[0])
for _ in range(max(1, STEPS // (N * T))):
    # trajectory = rollout(policy, label); reward = shape(log q(y | trajectory), log p(y))
    steps = []
    for _ in range(T):
        action = Normal(actor(seen), log_std.exp()).sample()
        after, reward, terminated, _, _ = env.step(action.clamp(-1, 1).numpy())
        steps.append((seen, action, torch.tensor(reward), 1.0 - torch.tensor(terminated).float()))
        seen = vector(after)
    s, a, r, going = (torch.stack(x) for x in zip(*steps, strict=True))
    # policy <- trajectory, reward
    with torch.no_grad():
        values = critic(torch.cat([s, seen[None]]))[..., 0]
        old = Normal(actor(s), log_std.exp()).log_prob(a).sum(-1)
    advantages = gae(r, 0.99 * going, values, 0.95)
    returns, scaled = advantages + values[:-1], (advantages - advantages.mean()) / advantages.std()
    for rows in [part for _ in range(5) for part in torch.randperm(N * T).split(200)]:
        t, n = rows // N, rows % N
        ratio = (Normal(actor(s[t, n]), log_std.exp()).log_prob(a[t, n]).sum(-1) - old[t, n]).exp()
        gain = torch.min(ratio * scaled[t, n], ratio.clamp(0.8, 1.2) * scaled[t, n])
        loss = (critic(s[t, n])[..., 0] - returns[t, n]).square().mean() - gain.mean()
        adam.zero_grad(), loss.backward(), adam.step()
    env.learn()  # discriminator <- trajectory, label
print(f"{model.health()['n_skills']:.1f} of {CODES} skills")
